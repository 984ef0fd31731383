"""Calls any public method over REST or over gRPC from one description, so that tests can hold the two against each other.

A request is a dict of the fields of the method's message, as JSON. Over REST its fields go where the method's
google.api.http rule puts them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import quote, urlencode

import grpc.aio
from google.api import annotations_pb2
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from taskexecutor.v1 import api_key_pb2, config_pb2, endpoint_pb2, execution_pb2, job_pb2, payload_spec_pb2, secret_pb2
from tests.e2e.rest import Answered, Json, Rest

MODULES: tuple[ModuleType, ...] = (
    api_key_pb2,
    config_pb2,
    endpoint_pb2,
    execution_pb2,
    job_pb2,
    payload_spec_pb2,
    secret_pb2,
)
METHODS: dict[str, MethodDescriptor] = {
    f"{service.name}.{method.name}": method
    for module in MODULES
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
"""All public methods by `Service.Method`."""
SERVICES = {method.containing_service.full_name for method in METHODS.values()}

_DETAILS = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.RequestInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
)
Metadata = Sequence[tuple[str, str]]


def success_status(name: str) -> int:
    """The REST status of a method that went well."""
    verb = name.partition(".")[2]
    if verb.startswith("Create"):
        return 201
    return 204 if verb.startswith(("Delete", "Revoke")) else 200


async def over_rest(rest: Rest, name: str, request: Json, headers: dict[str, str] | None = None) -> Answered:
    """The call as a REST client makes it."""
    rule = METHODS[name].GetOptions().Extensions[annotations_pb2.http]
    verb = rule.WhichOneof("pattern")
    template: str = getattr(rule, verb)
    in_path = set(re.findall(r"\{(\w+)\}", template))
    target = re.sub(r"\{(\w+)\}", lambda found: quote(request[found.group(1)], safe=""), template)
    others = {key: value for key, value in request.items() if key not in in_path}
    if rule.body:
        return await rest.call(verb.upper(), target, others, headers=headers)
    query = f"?{urlencode(others)}" if others else ""
    return await rest.call(verb.upper(), target + query, headers=headers)


async def over_grpc(
    channel: grpc.aio.Channel, key: str, name: str, request: Json, metadata: Metadata = ()
) -> tuple[Json, dict[str, Any]]:
    """The call as a gRPC client makes it: the answer as REST would print it, and the initial metadata. Raises AioRpcError."""
    method = METHODS[name]
    call = channel.unary_unary(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
    )(
        json_format.ParseDict(request, message_factory.GetMessageClass(method.input_type)()),
        metadata=[("authorization", f"Bearer {key}"), *metadata] if key else list(metadata),
        timeout=30,
    )
    answer = await call
    return as_json(answer), dict(await call.initial_metadata())


def as_json(message: Message) -> Json:
    """A message as the gateway prints it."""
    text = json_format.MessageToJson(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return dict(json.loads(text))


@dataclass(frozen=True)
class GrpcError:
    """An error as a gRPC client sees it."""

    code: grpc.StatusCode
    message: str
    details: dict[str, Any]  # by message name
    metadata: dict[str, Any]

    @property
    def reason(self) -> str:
        """The contract's code."""
        assert self.details["ErrorInfo"].domain == "taskexecutor"
        return str(self.details["ErrorInfo"].reason)

    @property
    def request_id(self) -> str:
        """The id of the failed call."""
        return str(self.details["RequestInfo"].request_id)

    @property
    def fields(self) -> list[str]:
        """The fields at fault."""
        violations = self.details["BadRequest"].field_violations if "BadRequest" in self.details else ()
        return [violation.field for violation in violations]


async def grpc_error(
    channel: grpc.aio.Channel, key: str, name: str, request: Json, metadata: Metadata = ()
) -> GrpcError:
    """The error that a call ends in."""
    try:
        answer, _ = await over_grpc(channel, key, name, request, metadata)
    except grpc.aio.AioRpcError as error:
        return read_error(error)
    raise AssertionError(f"{name} answered {answer}")


def read_error(error: grpc.aio.AioRpcError) -> GrpcError:
    """Unpacks the details."""
    metadata = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    assert (status.code, status.message) == (error.code().value[0], error.details())
    details = {}
    for packed in status.details:
        (kind,) = [kind for kind in _DETAILS if packed.Is(kind.DESCRIPTOR)]
        details[kind.__name__] = kind.FromString(packed.value)
    return GrpcError(error.code(), str(error.details()), details, dict(error.initial_metadata() or ()) | metadata)
