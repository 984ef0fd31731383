"""A process calls itself healthy while all its parts are, and says so once each way."""

from __future__ import annotations

from taskexecutor_common.runtime.health import HealthMonitor
from taskexecutor_common.runtime.loop import Loop


async def test_a_change_is_passed_on_once_each_way() -> None:
    said: list[bool] = []
    problems: dict[str, str | None] = {"database": None, "loop": None}

    async def set_serving(serving: bool) -> None:
        said.append(serving)

    monitor = HealthMonitor(set_serving, {name: lambda name=name: problems[name] for name in problems})
    await monitor.run_once()
    assert said == []
    problems["database"] = "away"
    await monitor.run_once()
    problems["loop"] = "stuck"
    await monitor.run_once()
    assert said == [False]
    problems.update(database=None, loop=None)
    await monitor.run_once()
    await monitor.run_once()
    assert said == [False, True]


async def test_a_loop_whose_rounds_fail_calls_itself_ill(monkeypatch) -> None:
    async def fail() -> float | None:
        raise RuntimeError("on purpose")

    now = [1000.0]
    monkeypatch.setattr("taskexecutor_common.runtime.loop.time.monotonic", lambda: now[0])
    loop = Loop("failing", fail, interval_sec=1.0)
    assert loop.problem() is None
    await loop._round()
    now[0] += 14
    assert loop.problem() == "no good round for 14 s"


async def test_a_loop_is_well_again_after_a_good_round(monkeypatch) -> None:
    async def work() -> float | None:
        return None

    now = [1000.0]
    monkeypatch.setattr("taskexecutor_common.runtime.loop.time.monotonic", lambda: now[0])
    loop = Loop("working", work, interval_sec=1.0)
    now[0] += 14
    assert loop.problem() is not None
    await loop._round()
    assert loop.problem() is None
