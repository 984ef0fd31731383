"""docs/openapi.yaml: valid, current, whole, and of one mind with the code about errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import openapi_spec_validator
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from taskexecutor.v1.error_pb2 import ErrorCode
from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.model.setup import Scope
from taskexecutor_envoy.main import DESCRIPTOR
from taskexecutor_envoy.routes import PathTemplate, rest_routes
from tests.contract.openapi.conftest import COMMITTED
from tools.openapi.contract import Contract
from tools.openapi.document import build
from tools.openapi.yaml_text import to_yaml

Json = dict[str, Any]

HEALTH = {"/healthz", "/readyz"}


def operations(document: Json) -> Iterator[Json]:
    for item in document["paths"].values():
        yield from item.values()


def errors() -> Iterator[type[TaskExecutorError]]:
    waiting = [TaskExecutorError]
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        yield found


def test_it_is_valid_openapi_3_1(document: Json) -> None:
    assert document["openapi"].startswith("3.1")
    openapi_spec_validator.validate(document)


def test_it_is_what_the_contract_makes_now(contract: Contract) -> None:
    assert to_yaml(build(contract)) == COMMITTED.read_text(encoding="utf-8"), "run `make gen`"


def test_the_text_holds_the_whole_document(contract: Contract, document: Json) -> None:
    assert build(contract) == document


def test_it_has_every_route_of_the_gateway_and_no_other(document: Json) -> None:
    served = {
        (method, route.template)
        for route in rest_routes(FileDescriptorSet.FromString(DESCRIPTOR.read_bytes()))
        for method in route.methods
    }
    written = {
        (verb.upper(), PathTemplate.parse(path))
        for path, item in document["paths"].items()
        if path not in HEALTH
        for verb in item
    }
    assert written <= served
    # The gateway's table has a row for paths where two templates meet; the document needs none.
    assert all(any(path.covers(row) for verb, path in written if verb == method) for method, row in served)


def test_every_operation_parameter_and_field_says_what_it_is(document: Json) -> None:
    silent = [operation["operationId"] for operation in operations(document) if not operation["summary"]]
    silent += [
        f"{operation['operationId']} {parameter['name']}"
        for operation in operations(document)
        for parameter in operation["parameters"]
        if "$ref" not in parameter and not parameter["description"]
    ]
    for name, schema in document["components"]["schemas"].items():
        if not schema.get("description"):
            silent.append(name)
        fields = schema.get("properties", {}).items()
        silent += [f"{name}.{field}" for field, said in fields if "description" not in said and "$ref" not in said]
    assert silent == []


def test_every_error_has_the_status_that_the_code_gives_it(document: Json) -> None:
    told = {
        (operation["operationId"], status, code)
        for operation in operations(document)
        for status, response in operation["responses"].items()
        if "$ref" in response
        for code in codes_of(document, response["$ref"])
    }
    raised = {error.reason: str(error.http_status) for error in errors() if "reason" in vars(error)}
    assert [row for row in told if raised.get(row[2], row[1]) != row[1]] == []


def codes_of(document: Json, reference: str) -> list[str]:
    response = document["components"]["responses"][reference.rpartition("/")[2]]
    narrowed = response["content"]["application/json"]["schema"]["allOf"][1]
    return list(narrowed["properties"]["error"]["properties"]["code"]["enum"])


def test_it_knows_every_code_of_the_contract(document: Json) -> None:
    error = document["components"]["schemas"]["Error"]["properties"]["error"]
    assert error["properties"]["code"]["enum"] == [name for name, number in ErrorCode.Value.items() if number]


def test_every_operation_but_the_health_checks_asks_for_one_scope_that_exists(document: Json) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            if path in HEALTH:
                assert operation["security"] == []
            else:
                [requirement] = operation["security"]
                [scope] = requirement["apiKey"]
                assert Scope(scope)


def media_types(document: Json) -> Iterator[tuple[str, Json]]:
    for operation in operations(document):
        if "requestBody" in operation:
            yield operation["operationId"], operation["requestBody"]["content"]["application/json"]
        for status, response in operation["responses"].items():
            if "content" in response:
                yield f"{operation['operationId']} {status}", response["content"]["application/json"]


def test_every_example_keeps_to_its_schema(document: Json) -> None:
    tried = 0
    for where, media in media_types(document):
        rules = {**media["schema"], "components": document["components"]}
        validator = jsonschema_rs.Draft202012Validator(rules, validate_formats=True)
        for name, example in media.get("examples", {}).items():
            faults = [fault.message for fault in validator.iter_errors(example["value"])]
            assert faults == [], f"{where}, example {name}"
            tried += 1
    assert tried > 20


def test_every_body_has_an_example(document: Json) -> None:
    without = [
        operation["operationId"]
        for operation in operations(document)
        if "requestBody" in operation and "examples" not in operation["requestBody"]["content"]["application/json"]
    ]
    assert without == []


@pytest.mark.parametrize("status", ["201", "204"])
def test_creations_and_deletions_have_statuses_of_their_own(document: Json, status: str) -> None:
    verb = {"201": ("Create",), "204": ("Delete", "Revoke")}[status]
    named = {
        operation["operationId"] for operation in operations(document) if operation["operationId"].startswith(verb)
    }
    having = {operation["operationId"] for operation in operations(document) if status in operation["responses"]}
    assert having == named
