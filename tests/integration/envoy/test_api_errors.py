"""Errors of the api reach REST callers with the api's own status and body, whatever way they were raised."""

from __future__ import annotations

import asyncio
import io
import json

import aiohttp
import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from taskexecutor.v1 import job_pb2
from tests.integration.envoy.gateway import Gateway
from tests.integration.envoy.scripted_api import ScriptedApi, answers, fails

BODY = '{"error":{"code":"JOB_NOT_FOUND","message":"Job \\u00ab\\"x\\"\\u00bb does not exist.","request_id":"req_1"}}'


def contract(http_code: int, body: str = BODY, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """The trailing metadata of an error as the contract has it."""
    return [("x-http-code", str(http_code)), ("x-error-body", body), *more]


async def test_an_error_answers_the_status_and_body_that_the_api_wrote(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "not for REST", *contract(404)))
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 404
        assert answer.content_type == "application/json"
        assert await answer.text() == BODY


@pytest.mark.parametrize("http_code", [400, 401, 403, 404, 409, 413, 422, 429, 500, 501, 503, 504])
async def test_the_apis_status_wins_over_that_of_grpc(
    api: ScriptedApi, rest: aiohttp.ClientSession, http_code: int
) -> None:
    api.on("GetJob", fails(StatusCode.FAILED_PRECONDITION, "", *contract(http_code)))
    async with rest.get("/jobs/x") as answer:
        assert (answer.status, await answer.text()) == (http_code, BODY)


async def test_an_error_shows_no_header_of_the_inside(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "x", *contract(404), *details()))
    async with rest.get("/jobs/x") as answer:
        assert {name.lower() for name in answer.headers} == {"content-type", "content-length", "date", "x-request-id"}


def details() -> list[tuple[str, str | bytes]]:
    """grpc-status-details-bin with an ErrorInfo, as gRPC clients get it."""
    packed = any_pb2.Any()
    packed.Pack(error_details_pb2.ErrorInfo(reason="JOB_NOT_FOUND", domain="taskexecutor"))
    status = status_pb2.Status(code=StatusCode.NOT_FOUND.value[0], message="gone", details=[packed])
    return [("grpc-status-details-bin", status.SerializeToString())]


async def test_an_error_body_of_30_kib_passes(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    body = json.dumps({"error": {"code": "INPUT_VALIDATION_FAILED", "message": "x" * (30 << 10), "request_id": "r"}})
    api.on("GetJob", fails(StatusCode.INVALID_ARGUMENT, "", *contract(422, body)))
    async with rest.get("/jobs/x") as answer:
        assert (answer.status, await answer.text()) == (422, body)


@pytest.mark.parametrize(("code", "http_code"), [(StatusCode.RESOURCE_EXHAUSTED, 429), (StatusCode.UNAVAILABLE, 503)])
async def test_retry_after_reaches_the_caller_in_whole_seconds(
    api: ScriptedApi, rest: aiohttp.ClientSession, code: StatusCode, http_code: int
) -> None:
    for sent, shown in [("7", "7"), ("0.2", "1"), ("2.5", "3")]:
        api.on("GetJob", fails(code, "", *contract(http_code, BODY, ("retry-after", sent))))
        async with rest.get("/jobs/x") as answer:
            assert answer.headers["Retry-After"] == shown


@pytest.mark.parametrize(
    ("code", "http_code", "reason"),
    [
        (StatusCode.INVALID_ARGUMENT, 400, "INVALID_REQUEST"),
        (StatusCode.UNAUTHENTICATED, 401, "UNAUTHORIZED"),
        (StatusCode.PERMISSION_DENIED, 403, "FORBIDDEN"),
        (StatusCode.NOT_FOUND, 404, "NOT_FOUND"),
        (StatusCode.ALREADY_EXISTS, 409, "CONFLICT"),
        (StatusCode.ABORTED, 409, "CONFLICT"),
        (StatusCode.FAILED_PRECONDITION, 409, "CONFLICT"),
        (StatusCode.RESOURCE_EXHAUSTED, 429, "RATE_LIMITED"),
        (StatusCode.UNIMPLEMENTED, 501, "UNIMPLEMENTED"),
        (StatusCode.UNAVAILABLE, 503, "UNAVAILABLE"),
        (StatusCode.DEADLINE_EXCEEDED, 504, "DEADLINE_EXCEEDED"),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
@pytest.mark.parametrize("with_details", [False, True])
async def test_an_error_without_the_contracts_keys_is_told_by_its_grpc_status(
    api: ScriptedApi,
    rest: aiohttp.ClientSession,
    code: StatusCode,
    http_code: int,
    reason: str,
    with_details: bool,
) -> None:
    message = 'say "näh",\nplease\\'
    status = status_pb2.Status(code=code.value[0], message=message)
    trailing = [("grpc-status-details-bin", status.SerializeToString())] if with_details else []
    api.on("GetJob", fails(code, message, *trailing))
    async with rest.get("/jobs/x") as answer:
        assert answer.status == http_code
        assert await answer.json() == {
            "error": {"code": reason, "message": message, "request_id": answer.headers["x-request-id"]}
        }


@pytest.mark.parametrize("half", [("x-error-body", BODY), ("x-http-code", "422"), ("x-http-code", "many")])
async def test_half_of_the_contracts_keys_count_as_none(
    api: ScriptedApi, rest: aiohttp.ClientSession, half: tuple[str, str]
) -> None:
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "gone", half))
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "NOT_FOUND"


async def test_503_without_a_hint_says_retry_after_one_second(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("GetJob", fails(StatusCode.UNAVAILABLE, "away"))
    async with rest.get("/jobs/x") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


async def test_a_server_that_goes_away_for_good_is_503(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("GetJob", fails(StatusCode.CANCELLED, "CANCELLED"))
    async with rest.get("/jobs/x") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert (await answer.json())["error"]["code"] == "UNAVAILABLE"


@pytest.mark.parametrize("code", [StatusCode.INTERNAL, StatusCode.UNKNOWN, StatusCode.DATA_LOSS])
async def test_other_statuses_are_500_and_leak_nothing(
    api: ScriptedApi, rest: aiohttp.ClientSession, code: StatusCode
) -> None:
    api.on("GetJob", fails(code, "password=hunter2"))
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 500
        assert "hunter2" not in await answer.text()
        assert (await answer.json())["error"]["code"] == "INTERNAL_ERROR"


async def test_an_exception_that_nobody_caught_is_500_and_leaks_nothing(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    async def stumble(_: object, __: object) -> None:
        raise LookupError("password=hunter2")

    api.on("GetJob", stumble)
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 500
        assert "hunter2" not in await answer.text()
        assert (await answer.json())["error"]["code"] == "INTERNAL_ERROR"


async def test_an_error_after_an_announced_success_keeps_the_shape(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    async def change_of_mind(_: object, context: grpc.aio.ServicerContext) -> None:
        await context.send_initial_metadata([("x-http-code", "201")])
        await context.abort(StatusCode.NOT_FOUND, "gone")

    api.on("GetJob", change_of_mind)
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 404
        assert await answer.json() == {
            "error": {"code": "NOT_FOUND", "message": "gone", "request_id": answer.headers["x-request-id"]}
        }


async def test_details_of_a_type_that_envoy_does_not_know_keep_the_shape(
    api: ScriptedApi, rest: aiohttp.ClientSession
) -> None:
    foreign = any_pb2.Any(type_url="type.googleapis.com/nowhere.Unknown", value=b"\x08\x01")
    status = status_pb2.Status(code=StatusCode.NOT_FOUND.value[0], message="gone", details=[foreign])
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "gone", ("grpc-status-details-bin", status.SerializeToString())))
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "NOT_FOUND"


async def test_a_body_whose_message_outgrows_grpcs_limit_is_413(api: ScriptedApi) -> None:
    numbers = b"0," * (1600 << 10) + b"0"  # 3.1 MiB of JSON is about 17 MiB as protobuf; the api takes 16
    gateway = Gateway(api.address, max_body_bytes=4 << 20)
    await gateway.start()
    try:
        async with (
            aiohttp.ClientSession(f"http://{gateway.address}") as rest,
            rest.post("/jobs", data=io.BytesIO(b'{"input":{"n":[' + numbers + b"]}}")) as answer,
        ):
            assert answer.status == 413
            assert (await answer.json())["error"]["code"] == "PAYLOAD_TOO_LARGE"
    finally:
        gateway.stop()
    assert api.calls == []


@pytest.mark.parametrize("depth", [60, 95, 1000, 100_000])
async def test_a_depth_bomb_keeps_the_shape_and_the_server(
    api: ScriptedApi, rest: aiohttp.ClientSession, depth: int
) -> None:
    bomb = '{"input":' + '{"a":' * depth + "1" + "}" * depth + "}"
    async with rest.post("/jobs", data=bomb) as answer:
        assert answer.status == 400
        assert set((await answer.json())["error"]) == {"code", "message", "request_id"}
    api.on("GetJob", answers(job_pb2.Job()))
    async with rest.get("/jobs/x") as answer:
        assert answer.status == 200


async def test_many_errors_at_once_do_not_mix_their_request_ids(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("GetJob", fails(StatusCode.NOT_FOUND, "gone"))

    async def ask(number: int) -> bool:
        async with rest.get("/jobs/x", headers={"x-request-id": f"mine-{number}"}) as answer:
            body = await answer.json()
        return body["error"]["request_id"] == answer.headers["x-request-id"] == f"mine-{number}"

    assert all(await asyncio.gather(*map(ask, range(200))))
