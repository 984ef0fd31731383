"""The paths: every REST method of the descriptor as an operation."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from taskexecutor_api.auth import scope_of
from tools.openapi import examples
from tools.openapi.bounds import Schema
from tools.openapi.contract import Contract, Operation, is_required
from tools.openapi.failures import REQUEST_ID_HEADER, Failures, prose
from tools.openapi.schemas import Field, Schemas

_EMPTY = "google.protobuf.Empty"
_ALSO_OK = {"CreateJob": "The endpoint has seen the idempotency key: the job that exists, with `deduplicated: true`."}
"""Creations that answer 200, too."""

# Where the answer to a creation has what a path asks for.
_POINTERS = {
    "name": ("name",),
    "job_id": ("job_id",),
    "execution_id": ("execution", "execution_id"),
    "key_id": ("api_key", "key_id"),
}


def tag(resource: str) -> str:
    """`payload_spec` is tagged `Payload specs`."""
    return resource.replace("_", " ").capitalize().replace("Api", "API") + "s"


class Paths:
    """Makes the paths; what they refer to gathers in `schemas` and `failures`."""

    def __init__(self, contract: Contract, schemas: Schemas, failures: Failures) -> None:
        self._contract = contract
        self._operations = list(contract.operations())
        self._schemas = schemas
        self._failures = failures

    def build(self) -> dict[str, dict[str, Schema]]:
        """Path items in the order of the contract."""
        paths: defaultdict[str, dict[str, Schema]] = defaultdict(dict)
        for operation in self._operations:
            paths[operation.path][operation.verb] = self._operation(operation)
        return dict(paths)

    def _operation(self, operation: Operation) -> Schema:
        summary, _, description = prose(operation.comment).partition(". ")
        made: Schema = {
            "operationId": operation.name,
            "tags": [tag(operation.resource)],
            "summary": summary.rstrip("."),
        }
        if description:
            made["description"] = description
        made["security"] = [{"apiKey": [scope_of(operation.full_method).value]}]
        made["parameters"] = [*self._parameters(operation), {"$ref": "#/components/parameters/RequestId"}]
        if operation.has_body:
            made["requestBody"] = self._body(operation)
        made["responses"] = {**self._successes(operation), **self._failures.responses(operation)}
        return made

    def _parameters(self, operation: Operation) -> list[Schema]:
        in_path = operation.path_parameters
        fields = {field.name: field for field in self._schemas.fields(operation.request)}
        made = [self._parameter(operation, fields[name], "path") for name in in_path]
        if not operation.has_body:
            rest = [field for field in fields.values() if field.name not in in_path]
            made += [self._parameter(operation, field, "query") for field in rest]
        return made

    def _parameter(self, operation: Operation, field: Field, place: str) -> Schema:
        return {
            "name": field.name,
            "in": place,
            "description": self._schemas.described(operation.request, field),
            "required": place == "path" or is_required(field),
            "schema": self._schemas.parameter(operation.request, field),
        }

    def _body(self, operation: Operation) -> Schema:
        in_path = operation.path_parameters
        schema = self._schemas.request(operation.request, without=in_path)
        fields = [field for field in self._schemas.fields(operation.request) if field.name not in in_path]
        return {
            "required": any(is_required(field) for field in fields),
            "content": {"application/json": {"schema": schema, **_examples(examples.REQUESTS.get(operation.name))}},
        }

    def _successes(self, operation: Operation) -> dict[str, Schema]:
        if operation.response == _EMPTY:
            return {"204": {"description": "Done.", "headers": REQUEST_ID_HEADER}}
        if not self._creates(operation):
            return {"200": self._success(operation, "Done.")}
        made = {"201": {**self._success(operation, "Created."), "links": self._links(operation)}}
        if operation.name in _ALSO_OK:
            made = {"200": self._success(operation, _ALSO_OK[operation.name]), **made}
        return made

    def _creates(self, operation: Operation) -> bool:
        return "REST answers 201" in operation.comment

    def _success(self, operation: Operation, description: str) -> Schema:
        media = {"schema": self._schemas.answer(operation.response), **_examples(examples.ANSWERS.get(operation.name))}
        return {"description": description, "headers": REQUEST_ID_HEADER, "content": {"application/json": media}}

    def _links(self, creation: Operation) -> dict[str, Schema]:
        """From a creation to what can be done with what was created."""
        links: dict[str, Schema] = {}
        for other in self._operations:
            expressions = {name: self._expression(creation, other, name) for name in other.path_parameters}
            if expressions and all(expressions.values()):
                links[other.name] = {"operationId": other.name, "parameters": expressions}
        return links

    def _expression(self, creation: Operation, other: Operation, parameter: str) -> str | None:
        if parameter == "name" and not other.path.startswith(f"{creation.path}/"):
            return None
        pointer = _POINTERS[parameter]
        if not self._has(creation.response, pointer):
            return None
        return "$response.body#/" + "/".join(pointer)

    def _has(self, message: str, pointer: tuple[str, ...]) -> bool:
        fields = {field.name: field for field in self._schemas.fields(message)}
        first, *rest = pointer
        if first not in fields:
            return False
        return not rest or self._has(fields[first].type_name.removeprefix("."), tuple(rest))


def _examples(named: dict[str, Any] | None) -> Schema:
    if not named:
        return {}
    return {"examples": {name: {"value": value} for name, value in named.items()}}
