"""A namespace sees and changes only its own things, whatever name or id it guesses."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import sys

import pytest

from tests.e2e.calls import METHODS, over_rest
from tests.e2e.conftest import make_key_in
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh

pytestmark = pytest.mark.e2e

HTTP: Json = {"url": "http://127.0.0.1:1/", "method": "POST"}
CRON: Json = {"trigger": "CRON", "cron": "0 0 1 1 *", "timezone": "UTC"}
BODIES: dict[str, Json] = {
    "PayloadSpecService.UpdatePayloadSpec": {"schema": {}},
    "ConfigService.UpdateConfig": {"values": {}},
    "SecretService.UpdateSecret": {"value": "taken over"},
    "EndpointService.UpdateEndpoint": {"spec": HTTP},
    "JobService.UpdateJob": {"cron": "* * * * *"},
}
OF_ONE_THING = sorted(
    name
    for name, method in METHODS.items()
    if {"name", "job_id", "execution_id", "key_id"} & set(method.input_type.fields_by_name)
    and not name.split(".")[1].startswith("Create")
)
LISTS = ("/payload-specs", "/configs", "/secrets", "/endpoints", "/jobs")


@pytest.fixture(scope="module")
async def owner(system: System) -> tuple[Rest, dict[str, str]]:
    """A namespace with one of everything under the name `mine`, and the ids in it."""
    rest = await make_key_in(system, fresh("namespace"))
    await rest.create("/payload-specs", {"name": "mine", "schema": {}})
    await rest.create("/configs", {"name": "mine", "values": {"a": 1}})
    await rest.create("/secrets", {"name": "mine", "value": "x"})
    await rest.create("/endpoints", {"name": "mine", "type": "HTTP", "spec": HTTP, "config": "mine"})
    cron = await rest.create("/jobs", {"endpoint": "mine", **CRON})
    key = await rest.create("/api-keys", {"name": "mine", "scopes": ["read"]})
    job = {"endpoint": "mine", "trigger": "DELAYED", "idempotency_key": "k", "run_at": "2099-01-01T00:00:00Z"}
    delayed = await rest.create("/jobs", job)
    return rest, {
        "name": "mine",
        "job_id": cron["job_id"],
        "execution_id": delayed["execution"]["execution_id"],
        "key_id": key["api_key"]["key_id"],
    }


@pytest.fixture(scope="module")
async def stranger(system: System) -> Rest:
    """A key of another namespace, made by the command line."""
    command = (pathlib.Path(sys.executable).parent / "taskexecutor-admin", "keys", "create")
    process = await asyncio.create_subprocess_exec(
        *(*command, "--namespace", fresh("namespace"), "--name", "stranger"),
        env={**os.environ, "TE_DATABASE_URL": system.stack.database_url},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    key = printed.decode().strip()
    assert re.fullmatch(r"te_[0-9a-f]+_[0-9a-f]+", key)
    return system.rest.as_key(key)


async def everything(rest: Rest) -> dict[str, str]:
    return {path: (await rest.call("GET", path)).text for path in (*LISTS, "/api-keys")}


@pytest.mark.parametrize("method", OF_ONE_THING)
async def test_what_another_namespace_has_does_not_exist(
    owner: tuple[Rest, dict[str, str]], stranger: Rest, method: str
) -> None:
    rest, ids = owner
    before = await everything(rest)
    named = {name: value for name, value in ids.items() if name in METHODS[method].input_type.fields_by_name}
    answered = await over_rest(stranger, method, named | BODIES.get(method, {}))
    assert answered.status == 404, answered
    assert answered.code.endswith("_NOT_FOUND")
    assert await everything(rest) == before


@pytest.mark.parametrize("path", LISTS)
async def test_lists_show_nothing_of_another_namespace(
    owner: tuple[Rest, dict[str, str]], stranger: Rest, path: str
) -> None:
    assert await owner[0].items(path) != []
    assert await stranger.items(path) == []


async def test_keys_of_another_namespace_are_not_listed(owner: tuple[Rest, dict[str, str]], stranger: Rest) -> None:
    assert [key["name"] for key in await stranger.items("/api-keys")] == ["stranger"]


async def test_jobs_and_endpoints_can_not_refer_to_another_namespace(
    owner: tuple[Rest, dict[str, str]], stranger: Rest
) -> None:
    job = {"endpoint": "mine", "trigger": "IMMEDIATE", "idempotency_key": "k"}
    endpoint = {"name": "theirs", "type": "HTTP", "spec": HTTP}
    secret = {**HTTP, "headers": {"X-A": "{{secret.mine}}"}}
    for target, body, code in (
        ("/jobs", job, "ENDPOINT_NOT_FOUND"),
        ("/jobs", {"endpoint": "mine", **CRON}, "ENDPOINT_NOT_FOUND"),
        ("/endpoints", {**endpoint, "payload_spec": "mine"}, "INVALID_PAYLOAD_SPEC_REF"),
        ("/endpoints", {**endpoint, "config": "mine"}, "INVALID_CONFIG_REF"),
        ("/endpoints", {**endpoint, "spec": secret}, "TEMPLATE_RESOLUTION_FAILED"),
    ):
        assert (await stranger.call("POST", target, body)).code == code
    batch = await stranger.post("/jobs/batch", {"jobs": [job]})
    assert batch["items"][0]["error"]["code"] == "ENDPOINT_NOT_FOUND"
    assert await stranger.items("/jobs?endpoint=mine") == []


async def test_names_and_keys_are_free_in_every_namespace(system: System) -> None:
    one, other = [await make_key_in(system, fresh("namespace")) for _ in range(2)]
    jobs = []
    for rest in (one, other):
        await rest.create("/configs", {"name": "same", "values": {"path": f"/same/{rest.key}"}})
        await rest.create("/secrets", {"name": "same", "value": rest.key})
        spec = {
            "url": system.receiver.url("{{config.path}}"),
            "method": "POST",
            "body_template": "{{secret.same}}",
        }
        await rest.create("/endpoints", {"name": "same", "type": "HTTP", "spec": spec, "config": "same"})
        jobs.append(await system.job("same", rest=rest, idempotency_key="same"))
    assert jobs[0]["job_id"] != jobs[1]["job_id"]
