"""gRPC and REST are two spellings of the same calls: each public method answers the same over both."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.e2e.calls import METHODS, SERVICES, grpc_error, over_grpc, over_rest, success_status
from tests.e2e.conftest import make_key_in
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

READS = ("Get", "List", "Preview", "Render")
SCHEMA: Json = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}


@dataclass(frozen=True)
class Step:
    """One call of the scenario. `$x` in the request stands for what an earlier step kept as x."""

    method: str
    request: Json
    keeps: str = ""
    """`x=path.to.value` of the answer."""
    ready: str = ""
    """`path=value` that the answer reaches: the call is repeated until then."""


def scenario(url: str) -> Iterator[Step]:
    """Every public method, in an order that makes sense."""
    spec = {"url": "{{config.base}}/" + "parity", "method": "POST", "body_template": {"hello": "{{input.who}}"}}
    http = {"type": "HTTP", "payload_spec": "who", "config": "shop", "spec": spec}
    yield Step("PayloadSpecService.CreatePayloadSpec", {"name": "who", "schema": SCHEMA})
    yield Step("PayloadSpecService.UpdatePayloadSpec", {"name": "who", "schema": {**SCHEMA, "title": "Who"}})
    yield Step("PayloadSpecService.GetPayloadSpec", {"name": "who"})
    yield Step("PayloadSpecService.ListPayloadSpecs", {"limit": 1})
    yield Step("PayloadSpecService.CreatePayloadSpec", {"name": "idle", "schema": {}})
    yield Step("PayloadSpecService.DeletePayloadSpec", {"name": "idle"})
    yield Step("ConfigService.CreateConfig", {"name": "shop", "values": {"base": "x", "n": 1, "f": 0.5, "no": None}})
    yield Step("ConfigService.UpdateConfig", {"name": "shop", "values": {"base": url, "list": [1, True, "a", {}]}})
    yield Step("ConfigService.GetConfig", {"name": "shop"})
    yield Step("ConfigService.ListConfigRevisions", {"name": "shop"})
    yield Step("ConfigService.CreateConfig", {"name": "idle", "values": {}})
    yield Step("ConfigService.ListConfigs", {"limit": 1})
    yield Step("ConfigService.DeleteConfig", {"name": "idle"})
    yield Step("SecretService.CreateSecret", {"name": "token", "value": "first"})
    yield Step("SecretService.UpdateSecret", {"name": "token", "value": "second"})
    yield Step("SecretService.GetSecret", {"name": "token"})
    yield Step("SecretService.ListSecrets", {})
    yield Step("SecretService.DeleteSecret", {"name": "token"})
    yield Step("EndpointService.CreateEndpoint", {"name": "greet", **http})
    breaker = {"failure_rate": 0.25, "open_sec": 5}
    limits = {"max_in_flight": 5, "rate_limit": {"per_second": 12.5}, "circuit_breaker": breaker}
    changed = {**http, "retry_policy": {"max_attempts": 2}, "flow_control": limits}
    yield Step("EndpointService.UpdateEndpoint", {"name": "greet", **changed})
    yield Step("EndpointService.GetEndpoint", {"name": "greet"})
    yield Step("EndpointService.ListEndpoints", {"type": "HTTP"})
    yield Step("EndpointService.ListEndpointRevisions", {"name": "greet"})
    yield Step("EndpointService.PauseEndpoint", {"name": "greet"})
    yield Step("EndpointService.GetEndpoint", {"name": "greet"})
    yield Step("EndpointService.ResumeEndpoint", {"name": "greet"})
    yield Step("EndpointService.RenderEndpoint", {"name": "greet", "input": {"who": "you"}})
    yield Step("EndpointService.TestEndpoint", {"name": "greet", "input": {"who": "you"}})
    immediate = {"endpoint": "greet", "trigger": "IMMEDIATE", "idempotency_key": "k", "input": {"who": "you"}}
    yield Step("JobService.CreateJob", immediate, keeps="execution=execution.execution_id")
    yield Step(
        "ExecutionService.GetExecution", {"execution_id": "$execution"}, ready="status=SUCCESS", keeps="job=job_id"
    )
    yield Step("ExecutionService.ListAttempts", {"execution_id": "$execution"})
    yield Step("ExecutionService.ListExecutionLogs", {"execution_id": "$execution"})
    yield Step("JobService.GetJob", {"job_id": "$job"})
    yield Step("ExecutionService.ListJobExecutions", {"job_id": "$job", "status": "SUCCESS"})
    delayed = {**immediate, "trigger": "DELAYED", "idempotency_key": "l", "run_at": "2099-01-01T00:00:00Z"}
    yield Step("JobService.CreateJob", delayed, keeps="waiting=execution.execution_id")
    yield Step("ExecutionService.CancelExecution", {"execution_id": "$waiting"})
    cron = {"endpoint": "greet", "trigger": "CRON", "cron": "0 9 * * MON", "timezone": "Asia/Kolkata"}
    yield Step("JobService.CreateJob", {**cron, "input": {"who": "all"}, "catch_up": "LATEST"}, keeps="first=job_id")
    yield Step("JobService.UpdateJob", {"job_id": "$first", "cron": "30 9 * * MON"}, keeps="second=job_id")
    yield Step("JobService.ListJobVersions", {"job_id": "$second"})
    yield Step("JobService.PauseJob", {"job_id": "$second"})
    yield Step("JobService.ResumeJob", {"job_id": "$second", "catch_up": "ALL"})
    yield Step("JobService.GetJobStatus", {"job_id": "$second"})
    yield Step("JobService.CancelJob", {"job_id": "$second"})
    mixed = [{**immediate, "idempotency_key": "m"}, {**immediate, "endpoint": "nope"}, immediate, {**cron}]
    yield Step("JobService.BatchCreateJobs", {"jobs": mixed}, keeps="last=items.0.job.execution.execution_id")
    yield Step("ExecutionService.GetExecution", {"execution_id": "$last"}, ready="status=SUCCESS")
    yield Step("JobService.ListJobs", {"endpoint": "greet", "status": "RETIRED", "limit": 2})
    yield Step(
        "JobService.PreviewCron", {"cron": "@daily", "timezone": "Europe/Berlin", "starts_at": "2099-01-01T00:00:00Z"}
    )
    yield Step(
        "EndpointService.CreateEndpoint", {"name": "idle", "type": "HTTP", "spec": {"url": url, "method": "GET"}}
    )
    yield Step("EndpointService.DeleteEndpoint", {"name": "idle"})
    yield Step("ApiKeyService.CreateApiKey", {"name": "ci", "scopes": ["read", "write"]}, keeps="key=api_key.key_id")
    yield Step("ApiKeyService.RevokeApiKey", {"key_id": "$key"})
    yield Step("ApiKeyService.ListApiKeys", {})


class Tenant:
    """A namespace, spoken to over one of the two, and what the scenario kept there."""

    def __init__(self, rest: Rest, channel: grpc.aio.Channel, *, speaks_grpc: bool) -> None:
        self.rest = rest
        self._channel = channel
        self._speaks_grpc = speaks_grpc
        self._kept: dict[str, str] = {}

    async def take(self, step: Step) -> Json:
        """Makes the step's call, once its answer is ready."""
        request = {name: self._kept[value[1:]] if is_name(value) else value for name, value in step.request.items()}

        if step.ready:
            path, _, wanted = step.ready.partition("=")

            async def ready() -> bool:
                return bool((await self._over_rest(step.method, request))[path] == wanted)

            await wait_until(ready, what=str(step))
        answer = await self._call(step.method, request)
        if step.keeps:
            name, _, path = step.keeps.partition("=")
            self._kept[name] = dig(answer, path)
        return answer

    async def _call(self, method: str, request: Json) -> Json:
        """The answer. What only reads is asked over both, and must be the same to the letter."""
        if method.partition(".")[2].startswith(READS):
            over_both = [await self._over_rest(method, request), await self._over_grpc(method, request)]
            assert over_both[0] == over_both[1]
            return over_both[0]
        return await (self._over_grpc if self._speaks_grpc else self._over_rest)(method, request)

    async def _over_rest(self, method: str, request: Json) -> Json:
        answered = await over_rest(self.rest, method, request)
        assert answered.status == success_status(method), answered
        return answered.json if answered.text else {}

    async def _over_grpc(self, method: str, request: Json) -> Json:
        return (await over_grpc(self._channel, self.rest.key, method, request))[0]


def is_name(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("$")


def dig(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value[int(part) if part.isdigit() else part]
    return value


def without_chance(value: Any, name: str = "") -> Any:
    """An answer less what differs from one call to the next: ids, times, durations."""
    if name in ("request_id", "key_id", "key", "cursor") or name.endswith(("_ms", "_at")):
        return type(value).__name__
    if isinstance(value, dict):
        return {key: without_chance(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [without_chance(item) for item in value]
    return re.sub("[0-9a-f]{32}", "ID", value) if isinstance(value, str) else value


async def test_every_method_answers_the_same_over_rest_and_grpc(system: System, channel: grpc.aio.Channel) -> None:
    rest, grpc_ = [
        Tenant(await make_key_in(system, fresh("namespace")), channel, speaks_grpc=speaks_grpc)
        for speaks_grpc in (False, True)
    ]
    called = set()
    for step in scenario(system.receiver.url("")):
        over_one, over_other = await asyncio.gather(rest.take(step), grpc_.take(step))
        assert without_chance(over_one) == without_chance(over_other), step
        called.add(step.method)
    assert called == METHODS.keys()


async def test_reflection_lists_what_is_public_and_nothing_else(channel: grpc.aio.Channel) -> None:
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request]))
    answer = await call.read()
    names = {service.name for service in answer.list_services_response.service}
    assert names == SERVICES | {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_a_client_that_knows_only_the_address_can_call(system: System) -> None:
    """As grpcurl does: descriptors by reflection, then a call."""

    def create_and_read() -> Any:
        with grpc.insecure_channel(system.stack.url.removeprefix("http://")) as channel:
            pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
            create = pool.FindServiceByName("taskexecutor.v1.ConfigService").FindMethodByName("CreateConfig")
            request = GetMessageClass(create.input_type)(name=fresh("reflected"))
            request.values.update({"sender": "me"})
            call = channel.unary_unary(
                "/taskexecutor.v1.ConfigService/CreateConfig",
                request_serializer=GetMessageClass(create.input_type).SerializeToString,
                response_deserializer=GetMessageClass(create.output_type).FromString,
            )
            return call(request, metadata=[("authorization", f"Bearer {system.rest.key}")], timeout=10)

    config = await asyncio.to_thread(create_and_read)
    assert (await system.rest.get(f"/configs/{config.name}"))["values"] == {"sender": "me"}


async def test_a_grpc_error_carries_reason_field_and_request_id(rest: Rest, channel: grpc.aio.Channel) -> None:
    request = {"name": "Not A Name", "values": {}}
    error = await grpc_error(channel, rest.key, "ConfigService.CreateConfig", request, [("x-request-id", "mine-42")])
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert error.fields == ["name"]
    assert error.request_id == error.metadata["x-request-id"] == "mine-42"


async def test_an_error_has_the_same_words_over_both(rest: Rest, channel: grpc.aio.Channel) -> None:
    request = {"endpoint": "x", "trigger": "IMMEDIATE", "idempotency_key": "k" * 300}
    error = await grpc_error(channel, rest.key, "JobService.CreateJob", request)
    answered = await over_rest(rest, "JobService.CreateJob", request)
    assert (error.reason, error.message) == (answered.code, answered.message)


@pytest.mark.parametrize("given", ["mine-42", "a" * 128, "01J8ZQ:y-z.c_d"])
async def test_a_safe_request_id_is_echoed_over_both(rest: Rest, channel: grpc.aio.Channel, given: str) -> None:
    answered = await rest.call("GET", "/configs", headers={"x-request-id": given})
    _, metadata = await over_grpc(channel, rest.key, "ConfigService.ListConfigs", {}, [("x-request-id", given)])
    assert answered.headers["x-request-id"] == metadata["x-request-id"] == given


@pytest.mark.parametrize("given", ["a" * 129, "two words", '"quoted"', "<script>"])
async def test_an_unsafe_request_id_is_replaced(rest: Rest, given: str) -> None:
    answered = await rest.call("GET", "/configs/nope", headers={"x-request-id": given})
    assert re.fullmatch(r"req_[0-9a-f-]{32,36}", answered.headers["x-request-id"])
    assert answered.code == "CONFIG_NOT_FOUND"


async def test_a_job_remembers_the_request_that_created_it(system: System, rest: Rest) -> None:
    given = fresh("request")
    body = {"endpoint": await system.endpoint(), "trigger": "IMMEDIATE", "idempotency_key": "k"}
    answered = await rest.call("POST", "/jobs", body, headers={"x-request-id": given})
    assert (await rest.get(f"/jobs/{answered.json['job_id']}"))["request_id"] == given
