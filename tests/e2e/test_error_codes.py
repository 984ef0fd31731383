"""Every code of the contract: over REST with its status, over gRPC with its reason."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import grpc
import grpc.aio
import psycopg
import pytest
from grpc import StatusCode

from taskexecutor.v1.error_pb2 import ErrorCode
from tests.e2e.calls import grpc_error, over_rest
from tests.e2e.conftest import make_key_in, system_in
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, in_seconds
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

BURST = 5
HTTP: Json = {"url": "http://127.0.0.1:1/", "method": "POST"}
NO_JOB, NO_EXECUTION = f"job_{'0' * 32}", f"exec_{'0' * 32}"


@dataclass(frozen=True)
class Case:
    """A call that ends in this code; `{x}` in its request is filled in."""

    code: str
    status: int
    grpc_code: StatusCode
    method: str
    request: Json
    field: str | None = None


def endpoint(**fields: object) -> Json:
    return {"name": "new", "type": "HTTP", "spec": HTTP, **fields}


def job(**fields: object) -> Json:
    return {"endpoint": "checked", "trigger": "IMMEDIATE", "idempotency_key": "k", **fields}


BAD, MISSING, STATE = StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND, StatusCode.FAILED_PRECONDITION
CREATE_ENDPOINT, CREATE_JOB = "EndpointService.CreateEndpoint", "JobService.CreateJob"
NAMED_SECRET = {**HTTP, "headers": {"X-A": "{{secret.nope}}"}}
CRON: Json = {"trigger": "CRON", "idempotency_key": None, "cron": "0 0 30 2 *", "timezone": "UTC"}
CASES = [
    Case("INVALID_REQUEST", 400, BAD, "ConfigService.CreateConfig", {"name": "new"}, "values"),
    Case("UNAUTHORIZED", 401, StatusCode.UNAUTHENTICATED, "JobService.ListJobs", {}),
    Case("FORBIDDEN", 403, StatusCode.PERMISSION_DENIED, "SecretService.DeleteSecret", {"name": "token"}),
    Case("PAYLOAD_SPEC_NOT_FOUND", 404, MISSING, "PayloadSpecService.GetPayloadSpec", {"name": "nope"}),
    Case("CONFIG_NOT_FOUND", 404, MISSING, "ConfigService.GetConfig", {"name": "nope"}),
    Case("SECRET_NOT_FOUND", 404, MISSING, "SecretService.GetSecret", {"name": "nope"}),
    Case("ENDPOINT_NOT_FOUND", 404, MISSING, "EndpointService.GetEndpoint", {"name": "nope"}),
    Case("JOB_NOT_FOUND", 404, MISSING, "JobService.GetJob", {"job_id": NO_JOB}),
    Case("EXECUTION_NOT_FOUND", 404, MISSING, "ExecutionService.GetExecution", {"execution_id": NO_EXECUTION}),
    Case("API_KEY_NOT_FOUND", 404, MISSING, "ApiKeyService.RevokeApiKey", {"key_id": "0123"}),
    Case("CONFLICT", 409, StatusCode.ALREADY_EXISTS, CREATE_ENDPOINT, endpoint(name="checked"), "name"),
    Case("CONFLICT", 409, STATE, "PayloadSpecService.DeletePayloadSpec", {"name": "order"}),
    Case("JOB_NOT_UPDATABLE", 409, STATE, "JobService.UpdateJob", {"job_id": "{job}", "cron": "* * * * *"}),
    Case("EXECUTION_NOT_CANCELLABLE", 409, STATE, "ExecutionService.CancelExecution", {"execution_id": "{done}"}),
    Case("INVALID_CRON", 422, BAD, CREATE_JOB, {**job(), **CRON, "endpoint": "open"}, "cron"),
    Case("INVALID_SCHEMA", 422, BAD, "PayloadSpecService.CreatePayloadSpec", {"name": "new", "schema": {"type": 5}}),
    Case("INVALID_PAYLOAD_SPEC_REF", 422, BAD, CREATE_ENDPOINT, endpoint(payload_spec="nope"), "payload_spec"),
    Case("INVALID_CONFIG_REF", 422, BAD, CREATE_ENDPOINT, endpoint(config="nope"), "config"),
    Case(
        "INPUT_VALIDATION_FAILED",
        422,
        BAD,
        CREATE_JOB,
        job(input={"amount": 12.5}, idempotency_key="refused"),
        "input.amount",
    ),
    Case("TEMPLATE_RESOLUTION_FAILED", 422, BAD, CREATE_ENDPOINT, endpoint(spec=NAMED_SECRET), "spec"),
]
IN_PRIVATE = {"RATE_LIMITED", "INTERNAL_ERROR", "UNAVAILABLE"}
OF_THE_GATEWAY = {  # tests/integration/envoy shows them, and test_bad_input.py those that a caller can cause
    *("NOT_FOUND", "METHOD_NOT_ALLOWED", "PAYLOAD_TOO_LARGE", "DEADLINE_EXCEEDED"),
    *("UNSUPPORTED_MEDIA_TYPE", "HEADERS_TOO_LARGE"),
}
NOT_NOW = {"VALUE_UNSPECIFIED", "UNIMPLEMENTED"}


@pytest.fixture(scope="module")
async def tenant(system: System) -> tuple[dict[str, str], dict[str, str]]:
    """Keys of a namespace by what they lead to, and the ids of two jobs in it."""
    namespace = fresh("namespace")
    rest = await make_key_in(system, namespace)
    schema = {"properties": {"amount": {"type": "integer"}}}
    await rest.create("/payload-specs", {"name": "order", "schema": schema})
    await rest.create("/secrets", {"name": "token", "value": "t"})
    await rest.create("/endpoints", endpoint(name="checked", payload_spec="order"))
    await rest.create("/endpoints", endpoint(name="open", spec={**HTTP, "url": system.receiver.url("/codes")}))
    waiting = await rest.create("/jobs", job(trigger="DELAYED", run_at=in_seconds(3600)))
    done = (await rest.create("/jobs", job(endpoint="open")))["execution"]["execution_id"]

    async def ended() -> bool:
        return str((await rest.get(f"/executions/{done}"))["status"]) == "SUCCESS"

    await wait_until(ended, what="the job's end")
    keys = {"UNAUTHORIZED": "te_0123_01234567", "FORBIDDEN": (await make_key_in(system, namespace, "read")).key}
    return {"": rest.key, **keys}, {"job": waiting["job_id"], "done": done}


def filled(request: Json, ids: dict[str, str]) -> Json:
    """The request with its ids, and without what is None."""
    values = {name: value for name, value in request.items() if value is not None}
    return {n: v.format(**ids) if isinstance(v, str) and re.fullmatch(r"\{\w+\}", v) else v for n, v in values.items()}


@pytest.mark.parametrize("case", CASES, ids=[f"{case.code}-{case.grpc_code.name}" for case in CASES])
async def test_a_code_has_its_status_over_rest_and_its_reason_over_grpc(
    rest: Rest, channel: grpc.aio.Channel, tenant: tuple[dict[str, str], dict[str, str]], case: Case
) -> None:
    keys, ids = tenant
    key, request = keys.get(case.code, keys[""]), filled(case.request, ids)
    answered = await over_rest(rest.as_key(key), case.method, request)
    assert (answered.status, answered.code) == (case.status, case.code)

    error = await grpc_error(channel, key, case.method, request)
    assert (error.code, error.reason) == (case.grpc_code, case.code)
    assert error.message == answered.message
    if case.field:
        assert error.fields == [case.field]


def test_every_code_of_the_contract_is_shown_by_a_test() -> None:
    shown = {case.code for case in CASES} | IN_PRIVATE | OF_THE_GATEWAY
    assert shown | NOT_NOW == set(ErrorCode.Value.keys())


@pytest.fixture(scope="module")
async def fragile(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """A system of these tests' own: each key may call five times, then once in twenty seconds."""
    folder = tmp_path_factory.mktemp("fragile") / "data"
    async with system_in(folder, receiver, TE_RATE_LIMIT_PER_SEC="0.05", TE_RATE_LIMIT_BURST=str(BURST)) as system:
        yield system


@pytest.fixture(scope="module")
async def fragile_channel(fragile: System) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(fragile.stack.url.removeprefix("http://")) as channel:
        yield channel


async def test_a_key_that_calls_too_often_is_rate_limited_with_a_time_to_wait(
    fragile: System, fragile_channel: grpc.aio.Channel
) -> None:
    rest = await make_key_in(fragile, fresh("namespace"))
    for _ in range(BURST):
        await rest.get("/configs")
    answered = await rest.call("GET", "/configs")
    assert (answered.status, answered.code) == (429, "RATE_LIMITED")
    assert 1 <= int(answered.headers["retry-after"]) <= 20
    error = await grpc_error(fragile_channel, rest.key, "ConfigService.ListConfigs", {})
    assert (error.code, error.reason) == (StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
    assert 1 <= error.details["RetryInfo"].retry_delay.ToTimedelta().total_seconds() <= 20


async def test_another_key_of_the_same_namespace_has_a_rate_of_its_own(fragile: System) -> None:
    namespace = fresh("namespace")
    one, other = await make_key_in(fragile, namespace), await make_key_in(fragile, namespace)
    statuses = [(await one.call("GET", "/configs")).status for _ in range(BURST + 1)]
    assert statuses[-1] == 429
    await other.get("/configs")


async def test_a_fault_of_ours_says_nothing_but_a_request_id_that_the_log_knows(
    fragile: System, fragile_channel: grpc.aio.Channel
) -> None:
    rest = await make_key_in(fragile, fresh("namespace"))
    async with await psycopg.AsyncConnection.connect(fragile.stack.database_url, autocommit=True) as database:
        await database.execute("ALTER TABLE payload_specs RENAME TO hidden")
        try:
            answered = await rest.call("GET", "/payload-specs")
            error = await grpc_error(fragile_channel, rest.key, "PayloadSpecService.ListPayloadSpecs", {})
        finally:
            await database.execute("ALTER TABLE hidden RENAME TO payload_specs")
    assert (answered.status, answered.code) == (500, "INTERNAL_ERROR")
    assert (error.code, error.reason) == (StatusCode.INTERNAL, "INTERNAL_ERROR")
    assert answered.message == error.message
    assert "payload_specs" not in answered.text
    log = (fragile.stack.settings.data_dir / "logs" / "api.log").read_text()
    assert answered.headers["x-request-id"] in log
    assert error.request_id in log


async def test_without_its_database_it_is_unavailable_and_comes_back(
    fragile: System, fragile_channel: grpc.aio.Channel
) -> None:
    """The database refuses everybody for a while, as it does while it fails over."""
    rest = await make_key_in(fragile, fresh("namespace"))
    await rest.get("/configs")  # the key is known for some seconds
    server = urlsplit(fragile.stack.database_url)
    name = server.path.removeprefix("/")
    async with await psycopg.AsyncConnection.connect(server._replace(path="/postgres").geturl(), autocommit=True) as db:
        await db.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            await db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            answered, error = await asyncio.gather(
                rest.call("GET", "/configs"),
                grpc_error(fragile_channel, rest.key, "ConfigService.ListConfigs", {}),
            )
        finally:
            await db.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert (answered.status, answered.code) == (503, "UNAVAILABLE")
    assert int(answered.headers["retry-after"]) >= 1
    assert (error.code, error.reason) == (StatusCode.UNAVAILABLE, "UNAVAILABLE")

    other = await make_key_in(fragile, fresh("namespace"))

    async def well() -> bool:
        return (await other.call("GET", "/healthz")).status == (await other.call("GET", "/readyz")).status == 200

    await wait_until(well, 20, "ready again")
    await other.get("/configs")
