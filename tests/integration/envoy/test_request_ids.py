"""One request id per request: the same for the api, the answer's header and its body."""

from __future__ import annotations

import re

import aiohttp
import pytest
from grpc import StatusCode

from taskexecutor.v1 import job_pb2
from tests.integration.envoy.scripted_api import ScriptedApi, answers, fails

FRESH = re.compile(r"req_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.mark.parametrize("own", ["a", "x" * 128, "req_1:2.3-4", "0f8fad5b-d9cb-469f-a165-70867728950e"])
async def test_a_safe_id_of_the_caller_is_kept(api: ScriptedApi, rest: aiohttp.ClientSession, own: str) -> None:
    api.on("GetJob", answers(job_pb2.Job()))
    async with rest.get("/jobs/x", headers={"x-request-id": own}) as answer:
        assert answer.headers.getall("x-request-id") == [own]
    assert api.calls[0].metadata["x-request-id"] == own


@pytest.mark.parametrize(
    "unsafe", ["", "x" * 129, "a b", 'a"b', "a<script>", "a/b", "a,b", "näh", "${jndi:ldap}", "%0d%0a"]
)
async def test_an_unsafe_id_is_replaced_everywhere(api: ScriptedApi, rest: aiohttp.ClientSession, unsafe: str) -> None:
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "gone"))
    async with rest.get("/jobs/x", headers={"x-request-id": unsafe}) as answer:
        shown = answer.headers["x-request-id"]
        assert (await answer.json())["error"]["request_id"] == shown
    assert FRESH.fullmatch(shown)
    assert api.calls[0].metadata["x-request-id"] == shown


async def test_two_ids_at_once_are_replaced_by_one(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    async with rest.get("/jobs/x", headers=[("x-request-id", "a"), ("x-request-id", "b")]) as answer:
        assert FRESH.fullmatch(answer.headers["x-request-id"])


async def test_every_request_without_an_id_gets_one_of_its_own(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    shown = {(await rest.get("/jobs/x")).headers["x-request-id"] for _ in range(20)}
    assert len(shown) == 20
    assert all(FRESH.fullmatch(request_id) for request_id in shown)
    assert {call.metadata["x-request-id"] for call in api.calls} == shown


@pytest.mark.parametrize("path", ["/nowhere", "/jobs?no_such=1", "/healthz", "/readyz"])
@pytest.mark.parametrize("sent", ["mine", "not safe"])
async def test_envoys_own_answers_carry_the_id_too(rest: aiohttp.ClientSession, path: str, sent: str) -> None:
    async with rest.get(path, headers={"x-request-id": sent}) as answer:
        shown = answer.headers["x-request-id"]
        body = await answer.json()
    assert shown == sent if sent == "mine" else FRESH.fullmatch(shown)
    assert body.get("error", {"request_id": shown})["request_id"] == shown


async def test_a_callers_spare_id_is_not_believed(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    headers = {"x-request-id": "not safe", "x-fresh-request-id": "forged"}
    async with rest.get("/jobs/x", headers=headers) as answer:
        assert FRESH.fullmatch(answer.headers["x-request-id"])
    assert "x-fresh-request-id" not in api.calls[0].metadata
