"""Where the surface and a schema must differ, each with its reason; what is not listed here is a defect."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import schemathesis

# The gateway reads protobuf's JSON, which has more than one way to write some values. docs/gateway.md says so.
_ENUMS = {"type", "trigger", "status", "catch_up", "backoff", "scopes"}
_LISTS = {"jobs", "scopes", "non_retryable_status_codes"}
_FREE_JSON = {"input", "values", "schema", "spec"}

_FAULTS_BEYOND_SHAPE = re.compile(
    r"""
      cursor:\ is\ damaged                      # only a list itself knows its cursors
    | ends_at:\ must\ lie\ after\ starts_at     # compares two fields
    | expires_at:\ lies\ in\ the\ past         # compares with the clock
    | type:\ an\ endpoint\ keeps\ its\ type     # compares with what is stored
    | spec\.                                    # templates, header names, topics, keys, the stored type's own fields
    """,
    re.VERBOSE,
)


def takes_more_than_documented(case: schemathesis.Case) -> bool:
    """Whether a case that breaks the schema may succeed all the same."""
    if case.operation.definition.raw["operationId"] == "BatchCreateJobs":
        return True  # a bad job among many is a result of its own, and the batch a success
    query = case.query or {}
    if "" in query:
        return True  # the one unknown parameter that the gateway overlooks
    return any(_is_number(query.get(name)) for name in _ENUMS) or _any_field(case.body, _is_other_spelling)


def refuses_for_more_than_shape(case: schemathesis.Case, response: schemathesis.Response) -> bool:
    """Whether a 400 has a reason that no schema can say. 422 means nothing else, and is allowed anyway."""
    if response.status_code != 400:
        return False
    if _any_field(case.body, lambda name, _: name == ""):
        return True  # the one unknown field that the gateway refuses
    message = json.loads(response.content)["error"]["message"]
    return _FAULTS_BEYOND_SHAPE.match(message) is not None


def _is_other_spelling(name: str, value: Any) -> bool:
    if name in _LISTS and (
        not isinstance(value, list) or any(item is None or isinstance(item, list) for item in value)
    ):
        return True
    if name in _ENUMS and any(_is_number(item) for item in (value if isinstance(value, list) else [value])):
        return True
    return name.endswith("_at") and isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return re.fullmatch(r"-?\d+", str(value)) is not None


def _any_field(value: Any, holds: Callable[[str, Any], bool]) -> bool:
    """Whether it holds for any field of a body, free JSON left aside."""
    if isinstance(value, list):
        return any(_any_field(item, holds) for item in value)
    if not isinstance(value, dict):
        return False
    return any(
        holds(name, item) or (name not in _FREE_JSON and _any_field(item, holds)) for name, item in value.items()
    )
