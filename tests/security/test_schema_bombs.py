"""Schemas and inputs that take long to hold against each other cost whoever sends them, and hold up nobody else."""

from __future__ import annotations

import asyncio
import os
import pathlib
import random
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop

from taskexecutor_api.input_checks import InputChecks
from taskexecutor_common.errors import InputValidationFailed, RateLimited, Unavailable
from taskexecutor_common.json_schema import CompiledSchema, compile_schema
from tests.support.waiting import wait_until

BUDGET_SEC = 0.3
SMALL = compile_schema({"properties": {"n": {"type": "integer"}}})
LETTERS = "".join(random.Random(1).choice("ab") for _ in range(250_000))
# Takes minutes: each state of the pattern is looked at for each letter.
SLOW = compile_schema({"properties": {"s": {"pattern": "[ab]*a[ab]{1000}c"}}})


@pytest.fixture
async def checks() -> AsyncIterator[InputChecks]:
    made = InputChecks(BUDGET_SEC)
    await made.start()
    yield made
    await made.stop()


def process_of(checks: InputChecks) -> int:
    assert checks._process is not None
    return checks._process.pid


# Each is within what the api takes: 128 KiB of schema, 256 KiB of input, and 30 levels of it.
BOMBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a pattern of many states": ({"properties": {"s": {"pattern": "[ab]*a[ab]{5000}c"}}}, {"s": LETTERS}),
    "many patterns": (
        {"properties": {"s": {"allOf": [{"pattern": f"[ab]*a[ab]{{{n}}}c"} for n in range(50, 90)]}}},
        {"s": LETTERS},
    ),
    "a long enumeration": (
        {"properties": {"s": {"items": {"enum": [f"x{n}" for n in range(12_000)]}}}},
        {"s": ["y"] * 15_000},
    ),
    "an enumeration often referred to": (
        {
            "$defs": {"e": {"enum": list(range(15_000))}},
            "properties": {"s": {"items": {"anyOf": [{"$ref": "#/$defs/e"}] * 12}}},
        },
        {"s": ["y"] * 15_000},
    ),
    "many alternatives": (
        {"properties": {"s": {"items": {"anyOf": [{"minimum": n} for n in range(2, 3_000)]}}}},
        {"s": [1] * 20_000},
    ),
    "names that have to be evaluated": (
        {
            "anyOf": [{"properties": {f"p{n}": {"type": "integer"} for n in range(900)}}] * 3,
            "unevaluatedProperties": False,
        },
        {f"p{n}": 1 for n in range(900)} | {"q": 1},
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_bomb_ends_within_its_budget_and_others_are_served_meanwhile(checks: InputChecks, bomb: str) -> None:
    schema, value = BOMBS[bomb]
    compiled = compile_schema(schema)
    checking = asyncio.create_task(asyncio.wait_for(checks.check("hostile", compiled, value), 10))
    longest = await longest_wait_of_others(checks, until=checking)
    with pytest.raises(InputValidationFailed):
        await checking
    assert longest < 3.0, "what is done at once takes milliseconds; the bombs take many seconds"


async def longest_wait_of_others(checks: InputChecks, until: asyncio.Task[None]) -> float:
    """How long one of many small checks of another namespace took at most, for as long as `until` runs."""
    loop, longest = asyncio.get_running_loop(), 0.0
    while not until.done():
        began = loop.time()
        await asyncio.sleep(0)
        await checks.check("other", SMALL, {"n": 1})
        longest = max(longest, loop.time() - began)
    return longest


async def test_what_is_too_much_is_said_to_be_so(checks: InputChecks) -> None:
    with pytest.raises(
        InputValidationFailed, match=r"^input: takes too long to be held against the schema\.$"
    ) as refused:
        await checks.check("n", SLOW, {"s": LETTERS})
    assert refused.value.field == "input"


async def test_without_the_other_process_nothing_is_said_of_the_input_and_later_it_is_checked(
    checks: InputChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as machine:
        machine.setattr("sys.executable", "/nowhere/python")
        with pytest.raises(Unavailable, match=r"^the input could not be checked$"):
            await checks.check("n", SLOW, {"s": LETTERS})
    with pytest.raises(InputValidationFailed):
        await checks.check("n", SLOW, {"s": LETTERS})


async def test_a_large_good_input_is_good_and_a_large_bad_one_named_at_its_place(checks: InputChecks) -> None:
    line = {"properties": {f"p{n}": {"type": "integer", "minimum": 0} for n in range(300)}}
    orders = compile_schema({"properties": {"lines": {"items": line}}})
    value = {"lines": [{f"p{n}": n for n in range(10)} for _ in range(1500)]}
    assert not orders.validate_at_once(value)
    await checks.check("n", orders, value)
    value["lines"][1234]["p7"] = "seven"
    with pytest.raises(
        InputValidationFailed, match=r"^input\.lines\.1234\.p7: \"seven\" is not of type \"integer\""
    ) as refused:
        await checks.check("n", orders, value)
    assert refused.value.field == "input.lines.1234.p7"


async def test_small_checks_need_no_other_process(checks: InputChecks) -> None:
    await checks.check("n", SMALL, {"n": 1})
    await checks.check("n", SMALL, None)
    await checks.check("n", None, {"n": "anything"})
    with pytest.raises(InputValidationFailed, match=r"^input\.n: "):
        await checks.check("n", SMALL, {"n": "one"})
    assert checks._process is None


def slow_check(checks: InputChecks, namespace: str) -> asyncio.Task[None]:
    return asyncio.create_task(checks.check(namespace, SLOW, {"s": LETTERS}))


async def test_namespaces_take_turns_and_none_makes_others_wait_for_all_of_its_own(
    checks: InputChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskexecutor_api.input_checks.MOST_WAITING", 4)
    waiting = [slow_check(checks, "greedy") for _ in range(6)]
    await asyncio.sleep(0)
    modest = slow_check(checks, "modest")
    with pytest.raises(InputValidationFailed):
        await modest
    assert sum(not check.done() for check in waiting) >= 2, "the modest one has not waited for all of the greedy ones"
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [*[InputValidationFailed] * 4, *[RateLimited] * 2]


async def test_a_caller_that_goes_away_leaves_no_answer_for_the_next(checks: InputChecks) -> None:
    leaving = slow_check(checks, "n")
    await wait_until(lambda: checks._process is not None)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    with pytest.raises(InputValidationFailed, match="takes too long"):
        await checks.check("n", SLOW, {"s": LETTERS})


async def test_a_process_that_is_killed_is_nobodys_fault_and_replaced(checks: InputChecks) -> None:
    checking = slow_check(checks, "n")
    await wait_until(lambda: checks._process is not None)
    os.kill(process_of(checks), signal.SIGKILL)
    with pytest.raises(Unavailable):
        await checking
    with pytest.raises(InputValidationFailed):
        await slow_check(checks, "n")


async def test_the_other_process_does_not_outlive_this_one(checks: InputChecks) -> None:
    with pytest.raises(InputValidationFailed, match="not of type"):
        await checks._check_elsewhere(SMALL, {"n": "one"})
    process = checks._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()  # as when this process ends, however it ends
    assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_the_other_process_knows_no_secret_of_ours(checks: InputChecks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TE_SECRET_ENCRYPTION_KEY", "k1:hush")
    with pytest.raises(InputValidationFailed):
        await checks._check_elsewhere(SMALL, {"n": "one"})
    environment = pathlib.Path(f"/proc/{process_of(checks)}/environ")
    assert b"hush" not in await asyncio.to_thread(environment.read_bytes)


def test_it_works_under_uvloop_as_the_api_runs() -> None:
    async def check_twice() -> None:
        checks = InputChecks(BUDGET_SEC)
        for value, said in ({"s": LETTERS}, "takes too long"), ({"s": [LETTERS]}, "not of type"):
            schema = compile_schema({"properties": {"s": {"type": "string", "pattern": "[ab]*a[ab]{1000}c"}}})
            with pytest.raises(InputValidationFailed, match=said):
                await checks.check("n", schema, value)
        await checks.stop()

    uvloop.run(check_twice())


def test_the_schemas_of_these_tests_are_ones_that_may_be_registered() -> None:
    for schema, _ in BOMBS.values():
        assert isinstance(compile_schema(schema), CompiledSchema)
