"""The live REST surface is fuzzed against docs/openapi.yaml: no 5xx, no undocumented status, no answer beside its schema.

The same requests are made in every run: the fuzzer draws from no randomness.
"""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.e2e_fuzz import document
from tests.e2e_fuzz.surface import Surface

EXAMPLES_PER_OPERATION = 10


def schema_of(raw: document.Json) -> schemathesis.BaseSchema:
    schema = schemathesis.openapi.from_dict(raw)
    schema.config.generation.update(deterministic=True, with_security_parameters=False)
    schema.config.checks.positive_data_acceptance.expected_statuses += ["422"]
    # What the gateway says to other methods is tested by tests/integration/envoy.
    schema.config.phases.coverage.unexpected_methods = set()
    return schema


DOCUMENT = document.read()
OPERATIONS = [operation for item in DOCUMENT["paths"].values() for operation in item.values()]


@pytest.fixture(scope="module", autouse=True)
def only_what_is_seen_here(surface: Surface) -> None:
    surface.statuses.clear()


@schema_of(document.led_to_what_exists(DOCUMENT)).parametrize()
@settings(
    max_examples=EXAMPLES_PER_OPERATION,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_documented(case: schemathesis.Case, surface: Surface) -> None:
    surface.judge(case, surface.send(case))


def test_every_documented_success_was_seen(surface: Surface) -> None:
    unseen = {
        (operation["operationId"], status)
        for operation in OPERATIONS
        for status in operation["responses"]
        if status < "300" and int(status) not in surface.statuses[operation["operationId"]]
    }
    if not all(surface.statuses.values()):
        pytest.skip("needs the tests of all operations in the same run")
    assert not unseen
