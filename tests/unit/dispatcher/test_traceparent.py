"""The trace context of a delivery."""

from __future__ import annotations

import re

from taskexecutor_dispatcher.endpoints.http_headers import traceparent

EXECUTION_ID = "exec_0190c9e37b7c7d2ea3f4b8c1d2e3f405"


def test_the_trace_id_is_the_executions_own() -> None:
    assert re.fullmatch(r"00-0190c9e37b7c7d2ea3f4b8c1d2e3f405-[0-9a-f]{16}-01", traceparent(EXECUTION_ID, 1))


def test_attempts_are_spans_of_their_own() -> None:
    assert len({traceparent(EXECUTION_ID, attempt) for attempt in range(1, 101)}) == 100


def test_an_attempt_is_always_the_same_span() -> None:
    assert traceparent(EXECUTION_ID, 2) == traceparent(EXECUTION_ID, 2)


def test_an_id_of_another_form_makes_a_trace_too() -> None:
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", traceparent("test", 1))
