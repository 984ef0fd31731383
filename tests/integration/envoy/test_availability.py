"""Health, restarts and shutdown: what a caller notices of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from taskexecutor.v1 import job_pb2
from tests.integration.envoy.gateway import Gateway, eventually
from tests.integration.envoy.scripted_api import ScriptedApi, answers

RESTARTS = 10


@pytest.fixture(autouse=True)
async def healthy_again(running_api: ScriptedApi) -> AsyncIterator[None]:
    """Leaves the api as the next test expects it: up and well."""
    yield
    await running_api.die()
    await running_api.start()


async def status_of(rest: aiohttp.ClientSession, path: str) -> int:
    """The status that `path` answers."""
    async with rest.get(path) as answer:
        return answer.status


async def becomes(rest: aiohttp.ClientSession, path: str, status: int, deadline_s: float = 5.0) -> None:
    """Waits until `path` answers `status`."""

    async def asked() -> bool:
        return await status_of(rest, path) == status

    await eventually(asked, deadline_s)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz?from=probe", "/readyz?from=probe"])
async def test_health_paths_answer_ok_without_a_key(api: ScriptedApi, rest: aiohttp.ClientSession, path: str) -> None:
    await becomes(rest, "/readyz", 200)
    async with rest.get(path) as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        assert await answer.json() == {"status": "ok"}


async def test_readiness_follows_the_apis_health_and_liveness_does_not(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    await becomes(rest, "/readyz", 200)
    await api.set_healthy(False)
    await becomes(rest, "/readyz", 503)
    assert await status_of(rest, "/healthz") == 200
    async with rest.get("/readyz") as answer:
        assert (await answer.json())["error"]["code"] == "UNAVAILABLE"
    await api.set_healthy(True)
    await becomes(rest, "/readyz", 200)


async def test_a_call_while_the_api_is_down_is_503_with_retry_after(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    await api.die()
    async with rest.get("/jobs") as answer:
        error = (await answer.json())["error"]
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert error["code"] == "UNAVAILABLE"
    assert error["request_id"] == answer.headers["x-request-id"]


async def test_a_restarted_api_is_used_soon(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("ListJobs", answers(job_pb2.ListJobsResponse()))
    await api.die()
    await becomes(rest, "/readyz", 503)
    await api.start()
    await becomes(rest, "/readyz", 200)
    assert await status_of(rest, "/jobs") == 200


@pytest.mark.parametrize("address", ["unix:{folder}/api.sock", "127.0.0.1:0"], ids=["unix", "tcp"])
async def test_graceful_restarts_fail_no_request(address: str) -> None:
    statuses: list[int] = []
    async with behind_a_gateway(address) as (api, rest):
        api.on("CreateJob", answers(job_pb2.Job(), ("x-http-code", "201")))
        done = asyncio.Event()

        async def keep_creating() -> None:
            while not done.is_set():
                async with rest.post("/jobs", json={}) as answer:
                    statuses.append(answer.status)

        callers = [asyncio.create_task(keep_creating()) for _ in range(8)]
        for _ in range(RESTARTS):
            before = len(statuses)
            await eventually(lambda seen=before: more_than(statuses, seen + 100))
            await becomes(rest, "/readyz", 200)
            await api.leave()
            await api.start()
        done.set()
        await asyncio.gather(*callers)
        assert set(statuses) == {201}
        assert len(api.calls) == len(statuses)


@asynccontextmanager
async def behind_a_gateway(address: str) -> AsyncIterator[tuple[ScriptedApi, aiohttp.ClientSession]]:
    """An api at `address`, and a session towards the Envoy in front of it."""
    with tempfile.TemporaryDirectory(prefix="te-api-") as folder:
        api = ScriptedApi(address.format(folder=folder))
        await api.start()
        gateway = Gateway(api.address)
        await gateway.start()
        try:
            async with aiohttp.ClientSession(f"http://{gateway.address}") as rest:
                yield api, rest
        finally:
            gateway.stop()
            await api.die()


async def more_than(statuses: list[int], count: int) -> bool:
    """Whether more than `count` answers are in."""
    return len(statuses) > count


async def test_a_call_that_finds_no_api_waits_for_its_return(
    api: ScriptedApi, rest: aiohttp.ClientSession, gateway: Gateway
) -> None:
    api.on("CreateJob", answers(job_pb2.Job(), ("x-http-code", "201")))
    await api.die()
    refused = await gateway.counter("cluster.api.upstream_rq_retry")
    asked = asyncio.create_task(rest.post("/jobs", json={}))

    async def tried_in_vain() -> bool:
        return await gateway.counter("cluster.api.upstream_rq_retry") > refused

    await eventually(tried_in_vain)
    await api.start()
    async with await asked as answer:
        assert answer.status == 201
    assert len(api.calls) == 1


async def test_what_may_have_been_executed_is_not_sent_again(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    began = asyncio.Event()

    async def die_halfway(_: object, __: object) -> None:
        began.set()
        await asyncio.Event().wait()

    api.on("CreateJob", die_halfway)
    asked = asyncio.create_task(rest.post("/jobs", json={}))
    await asyncio.wait_for(began.wait(), 5)
    await api.die()
    await api.start()
    async with await asked as answer:
        assert answer.status in {500, 503}
        assert set((await answer.json())["error"]) == {"code", "message", "request_id"}
    assert [call.method for call in api.calls] == ["CreateJob"]


async def test_a_drain_lets_a_request_in_flight_finish(api: ScriptedApi) -> None:
    gateway = Gateway(api.address)
    await gateway.start()
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: object, __: object) -> job_pb2.Job:
        began.set()
        await go_on.wait()
        return job_pb2.Job(job_id="job_1")

    api.on("GetJob", slow)
    try:
        async with aiohttp.ClientSession(f"http://{gateway.address}") as rest:
            asked = asyncio.create_task(rest.get("/jobs/x"))
            await asyncio.wait_for(began.wait(), 5)
            assert await gateway.admin("POST", "/drain_listeners?graceful") == "OK\n"
            go_on.set()
            async with await asked as answer:
                assert (await answer.json())["job_id"] == "job_1"
    finally:
        gateway.stop()
