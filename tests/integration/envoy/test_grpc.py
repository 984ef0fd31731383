"""gRPC and gRPC-Web callers share the listener and get what the api sent, untouched."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc
from taskexecutor.v1 import job_pb2, job_pb2_grpc
from tests.integration.envoy.scripted_api import ScriptedApi, answers, fails

CREATE = "/taskexecutor.v1.JobService/CreateJob"


@pytest.fixture(scope="module")
def gateway_settings() -> dict[str, Any]:
    return {"request_timeout_s": 1.0}


async def test_a_grpc_call_passes_with_its_metadata(api: ScriptedApi, channel: grpc.aio.Channel) -> None:
    api.on("CreateJob", answers(job_pb2.Job(job_id="job_1"), ("x-http-code", "201")))
    call = job_pb2_grpc.JobServiceStub(channel).CreateJob(
        job_pb2.CreateJobRequest(endpoint="e"), metadata=[("authorization", "Bearer te_1_2"), ("x-request-id", "mine")]
    )
    assert (await call).job_id == "job_1"
    assert api.calls[0].request.endpoint == "e"
    assert api.calls[0].metadata["authorization"] == "Bearer te_1_2"
    initial = dict(await call.initial_metadata())
    assert initial["x-request-id"] == "mine"
    assert "x-http-code" not in initial


async def test_a_grpc_error_keeps_its_status_message_and_details(api: ScriptedApi, channel: grpc.aio.Channel) -> None:
    packed = any_pb2.Any()
    packed.Pack(error_details_pb2.ErrorInfo(reason="JOB_NOT_FOUND", domain="taskexecutor"))
    status = status_pb2.Status(code=StatusCode.NOT_FOUND.value[0], message="näh", details=[packed])
    trailing = [
        ("grpc-status-details-bin", status.SerializeToString()),
        ("x-http-code", "404"),
        ("x-error-body", "{}"),
        ("retry-after", "7"),
    ]
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "näh", *trailing))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await job_pb2_grpc.JobServiceStub(channel).GetJob(job_pb2.GetJobRequest(job_id="x"))
    assert (caught.value.code(), caught.value.details()) == (StatusCode.NOT_FOUND, "näh")
    metadata = dict(caught.value.trailing_metadata())
    assert status_pb2.Status.FromString(metadata["grpc-status-details-bin"]) == status
    assert metadata["retry-after"] == "7"
    assert not {"x-http-code", "x-error-body"} & set(metadata)


async def test_envoys_own_headers_cannot_be_sent_by_a_caller(api: ScriptedApi, channel: grpc.aio.Channel) -> None:
    api.on("GetJob", answers(job_pb2.Job()))
    forged = [("x-envoy-original-path", "/jobs"), ("x-envoy-retry-on", "5xx"), ("x-envoy-anything", "x")]
    await job_pb2_grpc.JobServiceStub(channel).GetJob(job_pb2.GetJobRequest(), metadata=forged)
    assert not {name for name, _ in forged} & set(api.calls[0].metadata)


async def test_the_callers_own_deadline_ends_a_call(api: ScriptedApi, channel: grpc.aio.Channel) -> None:
    api.on("GetJob", forever)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await job_pb2_grpc.JobServiceStub(channel).GetJob(job_pb2.GetJobRequest(), timeout=0.2)
    assert caught.value.code() is StatusCode.DEADLINE_EXCEEDED


async def forever(_: object, __: object) -> None:
    """A call that never ends by itself."""
    await asyncio.Event().wait()


async def test_envoys_own_error_is_a_grpc_error_in_plain_words(api: ScriptedApi, channel: grpc.aio.Channel) -> None:
    api.on("GetJob", forever)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await job_pb2_grpc.JobServiceStub(channel).GetJob(job_pb2.GetJobRequest())
    assert (caught.value.code(), caught.value.details()) == (StatusCode.UNAVAILABLE, "upstream request timeout")


async def test_internal_services_are_unimplemented(api: ScriptedApi, channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await dispatcher_pb2_grpc.DispatcherServiceStub(channel).Wake(
            iter([dispatcher_pb2.DispatcherServiceWakeRequest()])
        )
    assert caught.value.code() is StatusCode.UNIMPLEMENTED
    assert api.calls == []


async def test_health_can_be_asked_and_watched_beyond_the_timeout_of_calls(
    api: ScriptedApi, channel: grpc.aio.Channel
) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING
    watch = stub.Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):  # half a second longer than a unary call may take
            await watch.read()


async def test_reflection_lists_the_services(channel: grpc.aio.Channel) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async for answer in stub.ServerReflectionInfo(iter([request])):
        names = [service.name for service in answer.list_services_response.service]
        break
    assert "taskexecutor.v1.JobService" in names


def web_frames(body: bytes) -> list[tuple[int, bytes]]:
    """The frames of a gRPC-Web body: (flags, content); flag 128 marks the trailers."""
    frames = []
    while body:
        flags, length = struct.unpack(">BI", body[:5])
        frames.append((flags, body[5 : 5 + length]))
        body = body[5 + length :]
    return frames


async def call_by_web(rest: aiohttp.ClientSession, path: str, request: Any) -> aiohttp.ClientResponse:
    """A unary gRPC-Web call."""
    message = request.SerializeToString()
    headers = {"content-type": "application/grpc-web+proto", "x-grpc-web": "1"}
    return await rest.post(path, data=struct.pack(">BI", 0, len(message)) + message, headers=headers)


async def test_a_grpc_web_call_goes_there_and_back(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("CreateJob", answers(job_pb2.Job(job_id="job_1"), ("x-http-code", "201")))
    answer = await call_by_web(rest, CREATE, job_pb2.CreateJobRequest(endpoint="e"))
    assert (answer.status, answer.content_type) == (200, "application/grpc-web+proto")
    (_, message), (flags, trailers) = web_frames(await answer.read())
    assert job_pb2.Job.FromString(message).job_id == "job_1"
    assert flags == 128
    assert b"grpc-status:0" in trailers.replace(b" ", b"")
    assert api.calls[0].request.endpoint == "e"


async def test_a_grpc_web_error_stays_one(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("CreateJob", fails(StatusCode.NOT_FOUND, "gone", ("x-http-code", "404"), ("x-error-body", "{}")))
    answer = await call_by_web(rest, CREATE, job_pb2.CreateJobRequest())
    assert answer.status == 200
    assert (answer.headers["grpc-status"], answer.headers["grpc-message"]) == ("5", "gone")
    assert await answer.read() == b""


async def test_internal_services_are_no_route_for_grpc_web_either(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    answer = await call_by_web(
        rest, "/taskexecutor.internal.v1.DispatcherService/Wake", dispatcher_pb2.DispatcherServiceWakeRequest()
    )
    assert answer.status == 404  # which gRPC-Web clients read as UNIMPLEMENTED
    assert api.calls == []
