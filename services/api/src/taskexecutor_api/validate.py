"""Checks of request fields; each refusal names the field and says what would be right."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, Protocol

from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from taskexecutor_common.errors import InvalidRequest
from taskexecutor_common.shortening import shortened

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_ENDPOINT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
MAX_JSON_BYTES = 256 * 1024
MAX_DEPTH = 30  # what the gateway carries is 32; deeper JSON reaches some clients and not others
MAX_EXACT = 2**53
_MAX_PATH_CHARS = 140  # even of emoji, it leaves room in an error for what is wrong with it (rpc/status.py)
DEFAULT_PAGE = 50
MAX_PAGE = 200


def require_name(value: str, field: str = "name") -> str:
    """A resource name as it may be created."""
    if not value:
        raise InvalidRequest(f"{field}: is required", field=field)
    if not _NAME.fullmatch(value):
        raise InvalidRequest(
            f"{field}: must be 1 to 128 lowercase letters, digits, hyphens or underscores, beginning with a letter or digit",
            field=field,
        )
    return value


def require_endpoint_name(value: str) -> str:
    """The name of an endpoint as it may be created: no underscores, as the brief says."""
    if value and not _ENDPOINT_NAME.fullmatch(value):
        raise InvalidRequest(
            "name: must be 1 to 128 lowercase letters, digits or hyphens, beginning with a letter or digit",
            field="name",
        )
    return require_name(value)


def require_text(value: str, field: str, *, most: int) -> str:
    """Text of 1 to `most` characters without NUL."""
    if not value:
        raise InvalidRequest(f"{field}: is required", field=field)
    if len(value) > most:
        raise InvalidRequest(f"{field}: has {len(value)} characters, {most} is the most", field=field)
    if "\x00" in value:
        raise InvalidRequest(f"{field}: must not contain NUL", field=field)
    return value


def require_bytes(value: str, field: str, *, most: int) -> str:
    """Text of 1 to `most` bytes of UTF-8 without NUL."""
    if (size := len(value.encode())) > most:
        raise InvalidRequest(f"{field}: has {size} bytes, {most} is the most", field=field)
    return require_text(value, field, most=most)


class EnumType(Protocol):
    """An enum of the contract, as generated code has it."""

    def Name(self, number: Any) -> str:
        """Raises ValueError for a number that is no value."""

    def items(self) -> list[tuple[str, Any]]:
        """All values: name and number."""


def require_enum(value: int, enum: EnumType, field: str) -> str:
    """The name of an enum value; the zero value counts as missing. Numbers that are no value come through the gateway."""
    try:
        if value != 0:
            return enum.Name(value)
        said = "is required"
    except ValueError:
        said = f"{value} is unknown"
    known = ", ".join(name for name, number in enum.items() if number != 0)
    raise InvalidRequest(f"{field}: {said}; it is one of {known}", field=field)


def optional_enum(value: int, enum: EnumType, field: str) -> str | None:
    """The name of an enum value, None for the zero value."""
    return None if value == 0 else require_enum(value, enum, field)


def within(value: int, field: str, *, least: int, most: int) -> int:
    """An integer within bounds."""
    if not least <= value <= most:
        raise InvalidRequest(f"{field}: {value} is not between {least} and {most}", field=field)
    return value


def page_size(request: Any) -> int:
    """The `limit` of a list request."""
    if not request.HasField("limit"):
        return DEFAULT_PAGE
    return within(request.limit, "limit", least=1, most=MAX_PAGE)


def require_object(request: Message, field: str) -> dict[str, Any]:
    """A required Struct field as a checked object."""
    if not request.HasField(field):
        raise InvalidRequest(f"{field}: is required", field=field)
    return to_object(getattr(request, field), field)


def optional_object(request: Message, field: str) -> dict[str, Any] | None:
    """A Struct field as a checked object, None when it is absent."""
    return to_object(getattr(request, field), field) if request.HasField(field) else None


def to_object(struct: Struct, field: str) -> dict[str, Any]:
    """A Struct as plain JSON. Refuses what would not survive: numbers a double cannot hold, NUL, depth, size."""
    size = struct.ByteSize()
    if size > MAX_JSON_BYTES:
        raise InvalidRequest(f"{field}: has more than {MAX_JSON_BYTES // 1024} KiB", field=field)
    try:
        return _object(struct, 1)
    except _Refused as refused:
        path = shortened(".".join([field, *reversed(refused.way)]), _MAX_PATH_CHARS)
        raise InvalidRequest(f"{path}: {refused.why}", field=path) from None


class _Refused(Exception):
    """Why a value is refused. The way to it is noted while the walk is left: on the walk itself, names would cost more
    than all the rest."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.way: list[str] = []


def _object(struct: Struct, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise _Refused(f"is nested deeper than {MAX_DEPTH} levels")
    fields = struct.fields
    result = {}
    for key in fields:
        if "\x00" in key:
            raise _Refused("a key must not contain NUL")
        try:
            result[key] = _value(fields[key], depth)
        except _Refused as refused:
            refused.way.append(key)
            raise
    return result


def _array(values: ListValue, depth: int) -> list[Any]:
    if depth > MAX_DEPTH:
        raise _Refused(f"is nested deeper than {MAX_DEPTH} levels")
    result: list[Any] = []
    try:
        for value in values.values:
            result.append(_value(value, depth))  # its length is the place of what is refused
    except _Refused as refused:
        refused.way.append(str(len(result)))
        raise
    return result


def _value(value: Value, depth: int) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        if "\x00" in text:
            raise _Refused("must not contain NUL")
        return text
    if kind == "number_value":
        return _number(value.number_value)
    if kind == "struct_value":
        return _object(value.struct_value, depth + 1)
    if kind == "list_value":
        return _array(value.list_value, depth + 1)
    if kind == "bool_value":
        return value.bool_value
    return None


def _number(value: float) -> int | float:
    if value.is_integer():
        if -MAX_EXACT < value < MAX_EXACT:
            return int(value)
        raise _Refused("an integer of magnitude 2^53 or more cannot be told from its neighbours; send it as a string")
    if not math.isfinite(value):
        raise _Refused("must be a finite number")
    return value


def optional_time(request: Message, field: str) -> datetime | None:
    """A timestamp field as a UTC time, None when it is absent."""
    if not request.HasField(field):
        return None
    stamp: Timestamp = getattr(request, field)
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{field}: is no time between the years 1 and 9999", field=field) from error
