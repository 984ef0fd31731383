"""What docs/openapi.yaml says of keys and scopes holds for every operation."""

from __future__ import annotations

import pytest

from tests.e2e_fuzz import document
from tests.e2e_fuzz.surface import Surface

OPERATIONS = [
    pytest.param(path, verb, operation, id=operation["operationId"])
    for path, item in document.read()["paths"].items()
    for verb, operation in item.items()
]


@pytest.mark.parametrize(("path", "verb", "operation"), OPERATIONS)
def test_a_call_without_a_key_is_401_but_for_the_health_checks(
    surface: Surface, path: str, verb: str, operation: document.Json
) -> None:
    answer = surface.call_as(None, verb, path)
    assert (answer.status_code == 401) is (operation["security"] != [])


@pytest.mark.parametrize(("path", "verb", "operation"), OPERATIONS)
@pytest.mark.parametrize("scope", ["read", "write", "admin"])
def test_a_key_is_refused_exactly_where_it_lacks_the_documented_scope(
    surface: Surface, path: str, verb: str, operation: document.Json, scope: str
) -> None:
    wanted = [name for requirement in operation["security"] for name in requirement["apiKey"]]
    answer = surface.call_as(surface.key_with(scope), verb, path)
    assert (answer.status_code != 403) is (wanted in ([], [scope]) or scope == "admin")
