"""The descriptor as the document's chapters need it: messages, enums and REST methods by name, each with its comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.api import annotations_pb2, field_behavior_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)

PACKAGE = "taskexecutor.v1"

# The brief's order; what comes new stands at the end.
_RESOURCES = ("payload_spec", "config", "secret", "endpoint", "job", "execution", "api_key")

# Field numbers in descriptor.proto, from which the paths of SourceCodeInfo are made.
_MESSAGE, _ENUM, _SERVICE = 4, 5, 6
_FIELD, _NESTED_MESSAGE, _NESTED_ENUM = 2, 3, 4
_VALUE = _METHOD = 2

Path = tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    """A method that REST callers reach."""

    name: str
    full_method: str
    """As gRPC calls it: `/package.Service/Method`."""
    resource: str
    comment: str
    verb: str
    """In lower case, as OpenAPI writes it."""
    path: str
    has_body: bool
    request: str
    """Full name of the request message."""
    response: str

    @property
    def path_parameters(self) -> list[str]:
        """Names of the variables in the path."""
        return re.findall(r"\{(\w+)\}", self.path)


class Contract:
    """The public package. Names are full, without a leading dot."""

    def __init__(self, descriptors: FileDescriptorSet) -> None:
        self.messages: dict[str, DescriptorProto] = {}
        self.enums: dict[str, EnumDescriptorProto] = {}
        self.comments: dict[str, str] = {}
        self._files = sorted((file for file in descriptors.file if file.package == PACKAGE), key=_resource_order)
        for file in self._files:
            _FileReader(self, file).read()

    @classmethod
    def parse(cls, descriptor: bytes) -> Contract:
        """Reads a serialised FileDescriptorSet with source info. Raises ValueError when it carries no comments."""
        contract = cls(FileDescriptorSet.FromString(descriptor))
        if not any(contract.comments.values()):
            raise ValueError("the descriptor has no comments: write it with source info")
        return contract

    def operations(self) -> Iterator[Operation]:
        """All REST operations in the document's order."""
        for file in self._files:
            for service in file.service:
                for method in service.method:
                    if method.options.HasExtension(annotations_pb2.http):
                        yield self._operation(_resource(file), f"{PACKAGE}.{service.name}", method)

    def _operation(self, resource: str, service: str, method: MethodDescriptorProto) -> Operation:
        rule = method.options.Extensions[annotations_pb2.http]
        verb = rule.WhichOneof("pattern")
        if rule.additional_bindings or rule.body not in ("", "*"):
            raise ValueError(f'{method.name}: only one binding, with body "*" or none, is understood')
        return Operation(
            name=method.name,
            full_method=f"/{service}/{method.name}",
            resource=resource,
            comment=self.comments[f"{service}.{method.name}"],
            verb=verb,
            path=getattr(rule, verb),
            has_body=rule.body == "*",
            request=method.input_type.removeprefix("."),
            response=method.output_type.removeprefix("."),
        )

    def resources(self) -> Mapping[str, str]:
        """Resource names such as `payload_spec` with what each is, in the document's order."""
        served = [file for file in self._files if file.service]
        return {_resource(file): self.comments[f"{PACKAGE}.{file.service[0].name}"] for file in served}


def is_required(field: FieldDescriptorProto) -> bool:
    """Whether a request must carry the field."""
    return field_behavior_pb2.REQUIRED in field.options.Extensions[field_behavior_pb2.field_behavior]


def _resource(file: FileDescriptorProto) -> str:
    return file.name.rpartition("/")[2].removesuffix(".proto")


def _resource_order(file: FileDescriptorProto) -> tuple[int, str]:
    name = _resource(file)
    return (_RESOURCES.index(name) if name in _RESOURCES else len(_RESOURCES), name)


class _FileReader:
    """Fills a contract from one file."""

    def __init__(self, contract: Contract, file: FileDescriptorProto) -> None:
        self._contract = contract
        self._file = file
        locations = file.source_code_info.location
        self._texts = {tuple(location.path): location.leading_comments for location in locations}

    def read(self) -> None:
        """Reads messages, enums and services."""
        for index, message in enumerate(self._file.message_type):
            self._message(PACKAGE, message, (_MESSAGE, index))
        for index, enum in enumerate(self._file.enum_type):
            self._enum(PACKAGE, enum, (_ENUM, index))
        for index, service in enumerate(self._file.service):
            name = self._note(PACKAGE, service.name, (_SERVICE, index))
            for number, method in enumerate(service.method):
                self._note(name, method.name, (_SERVICE, index, _METHOD, number))

    def _message(self, scope: str, message: DescriptorProto, path: Path) -> None:
        name = self._note(scope, message.name, path)
        self._contract.messages[name] = message
        for index, field in enumerate(message.field):
            self._note(name, field.name, (*path, _FIELD, index))
        for index, nested in enumerate(message.nested_type):
            self._message(name, nested, (*path, _NESTED_MESSAGE, index))
        for index, enum in enumerate(message.enum_type):
            self._enum(name, enum, (*path, _NESTED_ENUM, index))

    def _enum(self, scope: str, enum: EnumDescriptorProto, path: Path) -> None:
        name = self._note(scope, enum.name, path)
        self._contract.enums[name] = enum
        for index, value in enumerate(enum.value):
            self._note(name, value.name, (*path, _VALUE, index))

    def _note(self, scope: str, name: str, path: Path) -> str:
        full_name = f"{scope}.{name}"
        self._contract.comments[full_name] = " ".join(self._texts.get(path, "").split())
        return full_name
