"""The request decoder: whatever is sent over gRPC or REST is taken or clearly refused, and the services stay well."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any
from urllib.parse import quote

import grpc
import pytest
from google.api import annotations_pb2
from google.protobuf import message_factory
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given, note
from hypothesis import strategies as st

from taskexecutor_local.stack import Stack
from tests.e2e.calls import METHODS
from tests.fuzz.bounds import bounded
from tests.fuzz.conversation import Conversation, Json
from tests.fuzz.odd_requests import IT, json_texts, texts, wire
from tests.fuzz.trying import attempt
from tests.fuzz.world import World

pytestmark = pytest.mark.e2e

_DEADLINE_SEC = 10.0
_CLEAR = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
}
NAMES = list(METHODS)
RULES = {name: method.GetOptions().Extensions[annotations_pb2.http] for name, method in METHODS.items()}


@pytest.fixture
def talk(new_world: Callable[[], World]) -> Iterator[Conversation]:
    """A namespace in which names are found; afterwards deliveries must still be made."""
    world = new_world()
    made: dict[str, Json] = {
        "/payload-specs": {"schema": {}},
        "/configs": {"values": {"a": 1}},
        "/secrets": {"value": "x"},
        "/endpoints": {"type": "HTTP", "spec": {"url": f"{world.url}/{IT}", "method": "POST"}},
    }
    for target, body in made.items():
        assert world.talk.call("POST", target, {"name": IT, **body}).status == 201
    yield world.talk
    _still_delivers(world)


def _known(talk: Conversation, fields: Collection[str]) -> dict[str, str]:
    """Of the fields that a path may have: names and ids of what is there, and waits to be changed or cancelled."""
    if not {"job_id", "execution_id"} & set(fields):
        return {"name": IT, "key_id": IT}
    again = {"name": IT, "type": "HTTP", "spec": {"url": "http://127.0.0.1:1/", "method": "POST"}}
    talk.call("POST", "/endpoints", again)  # it may have been deleted, and its limits do not matter
    cron = talk.call("POST", "/jobs", {"endpoint": IT, "trigger": "CRON", "cron": "0 0 1 1 *", "timezone": "UTC"})
    return {"job_id": cron.json.get("job_id", IT), "execution_id": IT}


def _still_delivers(world: World) -> None:
    spec = {"url": f"{world.url}/afterwards", "method": "POST"}
    assert world.talk.call("POST", "/endpoints", {"name": "afterwards", "type": "HTTP", "spec": spec}).status == 201
    job = {"endpoint": "afterwards", "trigger": "IMMEDIATE", "idempotency_key": "k"}
    execution = world.talk.call("POST", "/jobs", job).json["execution"]["execution_id"]
    end = time.monotonic() + _DEADLINE_SEC
    while world.talk.get(f"/executions/{execution}")["status"] != "SUCCESS":
        assert time.monotonic() < end, "nothing is delivered any more"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def channel(stack: Stack) -> Iterator[grpc.Channel]:
    """gRPC on the gateway's port."""
    with grpc.insecure_channel(stack.url.removeprefix("http://")) as channel:
        yield channel


@bounded(100)
@given(st.data(), st.sampled_from(NAMES))
def test_any_bytes_over_grpc_are_taken_or_clearly_refused(
    talk: Conversation, channel: grpc.Channel, data: Any, name: str
) -> None:
    method = METHODS[name]
    raw = data.draw(wire(name))
    if data.draw(st.booleans()):  # what comes last in the bytes counts
        known = _known(talk, method.input_type.fields_by_name)
        ids = {field: known[field] for field in ("job_id", "execution_id") if field in method.input_type.fields_by_name}
        raw += message_factory.GetMessageClass(method.input_type)(**ids).SerializeToString()
    call = channel.unary_unary(f"/{method.containing_service.full_name}/{method.name}")
    metadata = [("authorization", f"Bearer {talk.key}")]
    answer, error = attempt(lambda: call(raw, metadata=metadata, timeout=_DEADLINE_SEC), grpc.RpcError)
    if error:
        note(f"    {error.code()} {error.details()}")
        assert error.code() in _CLEAR, error
        _explains_itself(error)
    else:
        note(f"    {answer[:300]!r}")
        message_factory.GetMessageClass(method.output_type).FromString(answer)


def _explains_itself(error: Any) -> None:
    packed = dict(error.trailing_metadata())["grpc-status-details-bin"]
    (info,) = [
        detail
        for detail in status_pb2.Status.FromString(packed).details
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)
    ]
    reason = error_details_pb2.ErrorInfo.FromString(info.value).reason
    assert re.fullmatch(r"[A-Z_]+", reason)
    assert reason not in ("INTERNAL_ERROR", "UNAVAILABLE")
    assert error.details()


@bounded(100)
@given(st.data(), st.sampled_from([name for name in NAMES if RULES[name].body]))
def test_any_json_over_rest_is_taken_or_clearly_refused(talk: Conversation, data: Any, name: str) -> None:
    verb = RULES[name].WhichOneof("pattern")
    template = getattr(RULES[name], verb)
    in_path = set(re.findall(r"\{(\w+)\}", template))
    body = data.draw(json_texts(name, in_path))
    known = _known(talk, in_path)
    talk.call(verb.upper(), re.sub(r"\{(\w+)\}", lambda found: known[found.group(1)], template), body.encode())


@bounded(40)
@given(st.binary(max_size=60), st.sampled_from([name for name in NAMES if RULES[name].body]))
def test_any_bytes_over_rest_are_clearly_refused(talk: Conversation, body: bytes, name: str) -> None:
    verb = RULES[name].WhichOneof("pattern")
    talk.call(verb.upper(), re.sub(r"\{\w+\}", IT, getattr(RULES[name], verb)), body)


_QUERIES = {name: rule.get for name, rule in RULES.items() if rule.get}


@bounded(80)
@given(st.data(), st.sampled_from(list(_QUERIES)))
def test_any_query_and_path_is_taken_or_clearly_refused(talk: Conversation, data: Any, name: str) -> None:
    values = texts | st.sampled_from(
        [IT, "0", "1", "200", "-1", "99999999999", "CRON", "ACTIVE", "1.0", "true", "%00", "NaN"]
    )
    fields = st.sampled_from([field.name for field in METHODS[name].input_type.fields]) | texts
    query = data.draw(st.lists(st.tuples(fields, values), max_size=3))
    path = re.sub(r"\{\w+\}", lambda _: quote(data.draw(st.just(IT) | texts.filter(bool)), safe=""), _QUERIES[name])
    sent = "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in query)
    talk.call("GET", f"{path}?{sent}")
