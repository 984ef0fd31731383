"""Errors that repeat long words of their callers: over REST and gRPC they arrive as what they are, and nobody else notices."""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest

from tests.e2e.calls import grpc_error
from tests.e2e.conftest import MakeKey
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh
from tests.support.receiver import Answer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

TOO_LARGE = 2**60
KEYS = {
    "a long key": "k" * 3_000,
    "a very long key": "k" * 64_000,
    "a huge key": "k" * 200_000,
    "a Chinese key": "界" * 2_000,
    "quotes": '"' * 20_000,
    "backslashes": "\\" * 20_000,
    "emoji": "🙈" * 20_000,
    "control characters": "\x01\x7f" * 10_000,
}
TEXTS = {"letters": "x" * 200, "Chinese": "地址" * 100, "emoji": "🙈" * 200, "quotes": '"' * 200}


def job(endpoint: str, values: Json) -> Json:
    return {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": fresh("key"), "input": values}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
async def test_a_refused_key_of_any_length_is_named_and_cut(
    system: System, rest: Rest, channel: grpc.aio.Channel, key: str
) -> None:
    request = job(await system.endpoint(), {key: TOO_LARGE})
    answered = await rest.call("POST", "/jobs", request)
    assert (answered.status, answered.code) == (400, "INVALID_REQUEST"), answered.text
    assert answered.message.startswith(f"input.{key[:50]}")
    assert answered.message.endswith("send it as a string")
    error = await grpc_error(channel, system.stack.api_key, "JobService.CreateJob", request)
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert error.message == answered.message
    (field,) = error.fields
    assert field.startswith("input.")
    assert len(field) <= 200


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_an_input_with_many_long_faults_is_refused_over_grpc_as_over_rest(
    system: System, rest: Rest, channel: grpc.aio.Channel, text: str
) -> None:
    names = [f"f{number}" for number in range(5)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    form = await rest.create("/payload-specs", {"name": fresh("form"), "schema": schema})
    endpoint = await system.endpoint(payload_spec=form["name"])
    for _ in range(5):  # what is a little too long is refused at random
        request = job(endpoint, dict.fromkeys(names, text))
        error = await grpc_error(channel, system.stack.api_key, "JobService.CreateJob", request)
        assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INPUT_VALIDATION_FAILED")
        assert error.message.startswith("input.f")  # of which fault it tells first is not promised
    answered = await rest.call("POST", "/jobs", request)
    assert (answered.status, answered.code) == (422, "INPUT_VALIDATION_FAILED")
    assert answered.message.startswith("input.f")


async def test_a_batch_cuts_what_its_items_are_refused_for(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    answer = await rest.post("/jobs/batch", {"jobs": [job(endpoint, {"k" * 200_000: TOO_LARGE})] * 3})
    for item in answer["items"]:
        assert item["error"]["code"] == "INVALID_REQUEST"
        assert len(item["error"]["message"]) < 500


async def test_no_error_ends_the_calls_of_others(system: System, rest: Rest, make_key: MakeKey) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", *[Answer(200, delay_sec=2.0)] * 4)
    stranger = await make_key(None, "read")
    slow = [asyncio.create_task(rest.call("POST", f"/endpoints/{endpoint}/test", {"input": {}})) for _ in range(4)]
    await wait_until(lambda: len(system.receiver.requests(f"/{endpoint}")) == 4, what="the calls under way")
    for key in KEYS.values():
        answered = await stranger.call("POST", "/endpoints/none/render", {"input": {key: TOO_LARGE}})
        assert (answered.status, answered.code) == (400, "INVALID_REQUEST"), answered.text
    assert [answered.status for answered in await asyncio.gather(*slow)] == [200] * 4
