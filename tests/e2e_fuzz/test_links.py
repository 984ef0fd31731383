"""The links of docs/openapi.yaml: each leads from the answer of a creation to an operation on what was created."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis

from tests.e2e_fuzz import document
from tests.e2e_fuzz.document import Json
from tests.e2e_fuzz.surface import Surface

SCHEMA = schemathesis.openapi.from_dict(document.read())
OPERATIONS = {
    operation["operationId"]: (path, verb, operation)
    for path, item in document.read()["paths"].items()
    for verb, operation in item.items()
}
CREATIONS = [name for name, (_, _, operation) in OPERATIONS.items() if "201" in operation["responses"]]
ENDINGS = ("Delete", "Revoke", "Cancel")


def case_of(name: str, **parts: Any) -> schemathesis.Case:
    path, verb, _ = OPERATIONS[name]
    return SCHEMA[path][verb].Case(**parts)


def example_of(name: str) -> Json | None:
    """The first example of an operation's body; None when it has no body."""
    body = OPERATIONS[name][2].get("requestBody")
    if body is None:
        return None
    return dict(next(iter(body["content"]["application/json"]["examples"].values()))["value"])


def wanted(creation: str, surface: Surface) -> Json:
    """What to create: the example, unless that needs other things to be there."""
    if creation == "CreateEndpoint":
        return surface.endpoint("linked")
    return surface.delayed_job("linked") if creation == "CreateJob" else example_of(creation) or {}


def resolve(expression: str, body: Any) -> str:
    """The value of `$response.body#/a/b`."""
    for step in expression.removeprefix("$response.body#/").split("/"):
        body = body[step]
    return str(body)


@pytest.mark.parametrize("creation", CREATIONS)
def test_links_lead_from_a_creation_to_what_was_created(creation: str, surface: Surface) -> None:
    created = surface.send(case_of(creation, body=wanted(creation, surface), media_type="application/json"))
    assert created.status_code == 201, created.text
    links = OPERATIONS[creation][2]["responses"]["201"]["links"].values()
    assert links
    for link in sorted(links, key=lambda link: link["operationId"].startswith(ENDINGS)):
        parameters = {name: resolve(expression, created.json()) for name, expression in link["parameters"].items()}
        body = example_of(link["operationId"])
        parts = {} if body is None else {"body": body, "media_type": "application/json"}
        case = case_of(link["operationId"], path_parameters=parameters, **parts)
        response = surface.send(case)
        surface.judge(case, response)
        assert response.status_code != 404, (link["operationId"], response.text)
