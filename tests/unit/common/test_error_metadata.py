"""Errors on the wire: whatever words of its caller an error repeats, all of it fits what every client takes."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from google.protobuf.struct_pb2 import Struct
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_api.validate import to_object
from taskexecutor_common.errors import EndpointNotFound, InvalidRequest, TaskExecutorError
from taskexecutor_common.rpc.status import Metadata, abort_arguments

CLIENTS_LIMIT = 8 * 1024
GATEWAYS_SHARE = 512  # date, server, content-type, x-request-id and the like
ENTRY = 32  # what HTTP/2 counts for an entry beside its name and value
LONGEST_ID = "r" * 128
HOSTILE = {
    "letters": "k",
    "Chinese": "地址",
    "emoji": "🙈",
    "both mixed": "a界🙈",
    "NUL": "\x00",
    "control characters": "\x01\x1f\x7f",
    "line breaks": "\r\n",
    "quotes": '"',
    "backslashes": "\\",
    "percent signs": "%",
    "combining": "e\u0301",
    "half a pair": "\ud83d",
}
FIELDS = {name: piece for name, piece in HOSTILE.items() if name != "half a pair"}  # no message can hold it


def wire_bytes(message: str, metadata: Metadata) -> int:
    """What HTTP/2 counts for the trailers of an error."""
    plain = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
    entries = [("grpc-status", "16"), ("grpc-message", quote(message, safe=plain))]
    for name, value in metadata:
        entries.append((name, value if isinstance(value, str) else base64.b64encode(value).decode()))
    return sum(len(name) + len(value) + ENTRY for name, value in entries)


def sent(error: TaskExecutorError) -> tuple[str, status_pb2.Status, dict[str, Any]]:
    """An error's message, its status and its REST body, after a look at whether they fit."""
    _, message, metadata = abort_arguments(error, LONGEST_ID)
    assert wire_bytes(message, metadata) <= CLIENTS_LIMIT - GATEWAYS_SHARE
    values = dict(metadata)
    body = values["x-error-body"]
    assert isinstance(body, str)
    assert all(" " <= character <= "~" for character in body)
    packed = values["grpc-status-details-bin"]
    assert isinstance(packed, bytes)
    told = json.loads(body)["error"]
    assert told["message"] == message
    return message, status_pb2.Status.FromString(packed), told


def violation(status: status_pb2.Status) -> error_details_pb2.BadRequest.FieldViolation:
    found = error_details_pb2.BadRequest()
    (packed,) = [detail for detail in status.details if detail.Is(found.DESCRIPTOR)]
    packed.Unpack(found)
    return found.field_violations[0]


@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("times", [1, 300, 100_000])
def test_whatever_an_error_repeats_it_fits_what_clients_take(message: str, times: int) -> None:
    for field in FIELDS.values():
        shown, status, _ = sent(InvalidRequest(message * times, field=field * times, retry_after=86_400.5))
        assert status.message == violation(status).description == shown
        assert len(violation(status).field) <= 200
        if times == 100_000:
            assert shown.endswith("…")
            assert violation(status).field.endswith("…")


@given(st.text(st.characters(codec="utf-8"), max_size=5000), st.text(st.characters(codec="utf-8"), max_size=500))
def test_any_text_is_sent_whole_or_as_a_beginning_that_fits(message: str, field: str) -> None:
    shown, status, _ = sent(InvalidRequest(message, field=field))
    assert shown == message or message.startswith(shown.removesuffix("…"))
    assert violation(status).field == field or field.startswith(violation(status).field.removesuffix("…"))


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_what_is_cut_is_cut_no_shorter_than_it_must_be(piece: str) -> None:
    _, message, metadata = abort_arguments(InvalidRequest(piece * 10_000, field="🙈" * 10_000), LONGEST_ID)
    assert wire_bytes(message, metadata) > CLIENTS_LIMIT - 3 * GATEWAYS_SHARE


def test_a_message_of_a_thousand_letters_is_sent_whole() -> None:
    message = "x" * 1000
    assert sent(InvalidRequest(message, field="input"))[0] == message


@pytest.mark.parametrize("piece", [piece for piece in FIELDS.values() if piece != "\x00"])
def test_the_reason_stays_readable_behind_a_key_of_any_length(piece: str) -> None:
    struct = Struct()
    struct.update({piece * 20_000: 2.0**60})
    with pytest.raises(InvalidRequest) as refused:
        to_object(struct, "input")
    shown, status, _ = sent(refused.value)
    assert shown.endswith("send it as a string")
    assert violation(status).field.startswith(f"input.{piece}")


def test_a_name_that_does_not_exist_may_be_of_any_length() -> None:
    assert sent(EndpointNotFound.named("n" * 100_000))[0].endswith("does not exist.")
    assert sent(EndpointNotFound.named("🙈" * 100_000))[0].startswith("Endpoint '🙈")
