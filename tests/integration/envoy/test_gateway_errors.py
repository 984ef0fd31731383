"""What Envoy refuses by itself has the same shape as the api's errors."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
from typing import Any

import aiohttp
import pytest

from taskexecutor.v1 import job_pb2
from tests.integration.envoy.gateway import Gateway
from tests.integration.envoy.rules import PATHS, verbs_of
from tests.integration.envoy.scripted_api import ScriptedApi, answers

VERBS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]


@pytest.fixture(scope="module")
def gateway_settings() -> dict[str, Any]:
    return {"request_timeout_s": 1.0}


async def error_of(answer: aiohttp.ClientResponse, status: int, code: str) -> dict[str, str]:
    """The error of an answer, after a check of its shape, its status, and the id in header and body."""
    assert answer.status == status
    assert answer.content_type == "application/json"
    body = await answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"code", "message", "request_id"}
    assert body["error"]["code"] == code
    assert body["error"]["request_id"] == answer.headers["x-request-id"]
    return body["error"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"endpoint":', ""),
        ("{'endpoint': 1}", ""),
        ('{"endpoint": "a"} trailing', ""),
        ("[]", ""),
        ('{"endpoint": {"a": 1}}', "endpoint"),
        ('{"run_at": "tomorrow"}', "run_at"),
        ('{"trigger": "SOMETIMES"}', "trigger"),
        ('{"input": {"n": 1e400}}', ""),
        ('{"input": {"a": 1, "a": 2}}', ""),
        ('{"endpoint": "\\ud800"}', ""),
        (b'{"endpoint": "\xff"}', ""),
    ],
)
async def test_malformed_json_and_wrong_types_are_400_in_the_transcoders_words(
    api: ScriptedApi, rest: aiohttp.ClientSession, body: str | bytes, told: str
) -> None:
    async with rest.post("/jobs", data=body) as answer:
        error = await error_of(answer, 400, "INVALID_REQUEST")
    assert error["message"]
    assert told in error["message"]
    assert api.calls == []


@pytest.mark.parametrize("path", ["/jobs?no_such=1", "/jobs?limit=many", "/jobs?limit=1.5", "/jobs?trigger=SOMETIMES"])
async def test_unknown_and_wrong_query_parameters_are_400(
    api: ScriptedApi, rest: aiohttp.ClientSession, path: str
) -> None:
    async with rest.get(path) as answer:
        error = await error_of(answer, 400, "INVALID_REQUEST")
    assert path.split("?")[1].split("=")[0] in error["message"] or "1.5" in error["message"]
    assert api.calls == []


async def test_a_body_that_contradicts_the_path_is_400(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    async with rest.put("/configs/mine", json={"name": "yours"}) as answer:
        await error_of(answer, 400, "INVALID_REQUEST")
    assert api.calls == []


@pytest.mark.parametrize("path", ["/", "/nowhere", "/jobs/", "/jobs/a/b/c", "/jobs//cancel", "//jobs", "/Jobs"])
async def test_an_unknown_path_is_404_and_named(rest: aiohttp.ClientSession, path: str) -> None:
    async with rest.get(f"http://{rest._base_url.authority}{path}") as answer:
        error = await error_of(answer, 404, "NOT_FOUND")
    assert f"GET {path}" in error["message"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_wrong_method_is_405_with_the_methods_that_are_served(
    api: ScriptedApi, rest: aiohttp.ClientSession, path: str
) -> None:
    served = verbs_of(path)
    for verb in [verb for verb in VERBS if verb not in served]:
        async with rest.request(verb, path) as answer:
            assert answer.headers["Allow"] == ", ".join(served)
            if verb == "HEAD":
                assert answer.status == 405
            else:
                await error_of(answer, 405, "METHOD_NOT_ALLOWED")
    assert api.calls == []


async def test_a_job_is_not_posted_to_though_the_batch_is(rest: aiohttp.ClientSession) -> None:
    async with rest.post("/jobs/some-name", json={}) as answer:
        await error_of(answer, 405, "METHOD_NOT_ALLOWED")
        assert answer.headers["Allow"] == "GET, PUT"
    async with rest.delete("/jobs/batch") as answer:
        assert answer.headers["Allow"] == "GET, POST, PUT"


@pytest.mark.parametrize("chunked", [None, True], ids=["with_length", "chunked"])
async def test_a_body_beyond_the_limit_is_413(
    api: ScriptedApi, rest: aiohttp.ClientSession, chunked: bool | None
) -> None:
    body = io.BytesIO(b'{"endpoint":"' + b"x" * (1 << 20) + b'"}')
    async with rest.post("/jobs", data=body, chunked=chunked) as answer:
        error = await error_of(answer, 413, "PAYLOAD_TOO_LARGE")
    assert "1048576" in error["message"]
    assert api.calls == []


async def test_a_body_just_within_the_limit_passes(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("CreateJob", answers(job_pb2.Job()))
    body = '{"endpoint":"' + "x" * ((1 << 20) - 20) + '"}'
    async with rest.post("/jobs", data=body) as answer:
        assert answer.status == 200


async def test_json_on_a_grpc_path_is_415(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    async with rest.post("/taskexecutor.v1.JobService/CreateJob", json={}) as answer:
        await error_of(answer, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert api.calls == []


async def test_an_internal_service_is_no_route(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    for path in ("DispatcherService/Wake", "SchedulerService/Wake"):
        async with rest.post(f"/taskexecutor.internal.v1.{path}", json={}) as answer:
            await error_of(answer, 404, "NOT_FOUND")
    assert api.calls == []


async def test_headers_beyond_the_limit_are_431_without_a_request_id(rest: aiohttp.ClientSession) -> None:
    async with rest.get("/jobs", headers={"x-large": "x" * 70_000}) as answer:
        assert answer.status == 431
        assert (await answer.json())["error"]["code"] == "HEADERS_TOO_LARGE"
        assert (await answer.json())["error"]["request_id"] is None


async def test_a_call_that_takes_too_long_is_504(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    async def forever(_: object, __: object) -> None:
        await asyncio.Event().wait()

    api.on("GetJob", forever)
    async with rest.get("/jobs/x") as answer:
        await error_of(answer, 504, "DEADLINE_EXCEEDED")


async def test_a_request_that_never_ends_is_cut_off_in_the_same_shape(gateway: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"POST /jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        body = json.loads(await reader.readline())
    writer.close()
    await writer.wait_closed()
    assert head.startswith(b"HTTP/1.1 408 ")
    assert body["error"]["code"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [("POST", "/jobs", "{"), ("GET", "/jobs?no_such=1", None), ("PATCH", "/jobs", None), ("GET", "/nowhere", None)],
)
async def test_a_mistake_does_not_cost_the_connection(
    api: ScriptedApi, gateway: Gateway, verb: str, path: str, body: str | None
) -> None:
    api.on("GetJob", answers(job_pb2.Job()))

    def twice() -> tuple[bool, int]:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
        connection.request(verb, path, body)
        refused = connection.getresponse()
        assert 400 <= refused.status < 500
        refused.read()
        first_socket = connection.sock
        connection.request("GET", "/jobs/x")
        served = connection.getresponse()
        served.read()
        kept = first_socket is not None and connection.sock is first_socket
        connection.close()
        return kept, served.status

    assert await asyncio.to_thread(twice) == (True, 200)
