"""The supervisor of one child process, with real child processes."""

import contextlib
import os
import pathlib
import signal
from collections.abc import AsyncIterator, Callable

import pytest

from taskexecutor_local.process import Process, Program, StartError, State
from tests.unit.local.waiting import is_gone, until

MakeProgram = Callable[..., Program]


class Watch:
    """Remembers all that a process told about itself."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.details: list[str] = []

    def __call__(self, process: Process) -> None:
        self.states.append(process.state)
        if process.detail:
            self.details.append(process.detail)


@contextlib.asynccontextmanager
async def started(program: Program, watch: Callable[[Process], None] = lambda _: None) -> AsyncIterator[Process]:
    process = Process(program, watch)
    try:
        await process.start()
        yield process
    finally:
        await process.stop()


async def test_start_returns_when_the_program_is_ready(make_program: MakeProgram, tmp_path: pathlib.Path) -> None:
    async with started(make_program()) as process:
        assert (tmp_path / "api").read_text() == str(process.pid)
        assert process.state is State.READY


async def test_a_killed_program_is_started_again(make_program: MakeProgram) -> None:
    async with started(make_program()) as process:
        first = process.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: process.state is State.READY and process.pid not in (None, first), "ready again")
        assert process.restarts == 1


async def test_each_restart_in_a_row_comes_later_than_the_one_before(
    make_program: MakeProgram, tmp_path: pathlib.Path
) -> None:
    watch = Watch()
    async with started(make_program(), watch) as process:
        for count in range(1, 4):
            process.send(signal.SIGKILL)
            await until(lambda count=count: process.restarts == count, f"death {count}")
            await until(lambda: process.state is State.READY, "ready again")
    assert watch.details == [f"was ended by SIGKILL; started again in {delay} s" for delay in ("0.2", "0.4", "0.8")]


async def test_stop_lets_the_program_finish(make_program: MakeProgram, tmp_path: pathlib.Path) -> None:
    async with started(make_program()) as process:
        pid = process.pid
    assert pid is not None
    assert is_gone(pid)
    assert (tmp_path / "stops").read_text() == "api\n"
    assert process.state is State.STOPPED


async def test_a_program_that_does_not_stop_in_time_is_killed(make_program: MakeProgram) -> None:
    async with started(make_program("api", "ignore-stop", stop_deadline_sec=0.2)) as process:
        pid = process.pid
    assert pid is not None
    assert is_gone(pid)


async def test_a_program_that_waits_for_its_restart_stays_down_after_stop(
    make_program: MakeProgram, tmp_path: pathlib.Path
) -> None:
    watch = Watch()
    async with started(make_program(), watch) as process:
        process.send(signal.SIGKILL)
        await until(lambda: process.state is State.WAITING, "waiting")
    assert process.pid is None
    assert watch.states[-2:] == [State.STOPPING, State.STOPPED]


async def test_before_stop_runs_while_the_program_still_works(
    make_program: MakeProgram, tmp_path: pathlib.Path
) -> None:
    seen = []

    async def look() -> None:
        seen.append(process.pid is not None and not (tmp_path / "stops").exists())

    async with started(make_program(before_stop=look)) as process:
        pass
    assert seen == [True]


async def test_a_program_that_ends_at_once_fails_the_start_with_its_last_words(make_program: MakeProgram) -> None:
    with pytest.raises(StartError, match=r"api ended with status 1\n.*no luck today"):
        async with started(make_program("api", "die")):
            pass


async def test_a_program_that_is_never_ready_fails_the_start_and_is_ended(make_program: MakeProgram) -> None:
    async def never() -> bool:
        return False

    program = make_program(start_deadline_sec=0.3)
    process = Process(Program(**{**vars(program), "is_ready": never}), lambda _: None)
    with pytest.raises(StartError, match=r"was not ready within 0\.3 s"):
        await process.start()
    assert process.pid is None
