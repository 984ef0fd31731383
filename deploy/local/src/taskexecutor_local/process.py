"""One child process, kept alive: started, waited for until ready, started again when it died, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import enum
import pathlib
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence

from taskexecutor_local.logs import last_lines

READY_POLL_SEC = 0.05
FIRST_DELAY_SEC = 0.2
LONGEST_DELAY_SEC = 5.0
HEALTHY_AFTER_SEC = 20.0  # a process that was ready this long has earned a quick restart


class StartError(Exception):
    """A program ended, or did not become ready in time, when it was first started; the message is for the user."""


class State(enum.Enum):
    """Where a supervised process stands."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"  # died; started again after a delay
    STOPPING = "stopping"
    STOPPED = "stopped"


async def nothing() -> None:
    """What a program does before it is stopped, unless it says otherwise."""


@dataclasses.dataclass(frozen=True)
class Program:
    """What to run, how to tell that it is ready, and how to end it."""

    name: str
    command: Sequence[str]
    log_path: pathlib.Path
    is_ready: Callable[[], Awaitable[bool]]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    address: str = ""  # shown to the user
    start_deadline_sec: float = 30.0
    before_stop: Callable[[], Awaitable[None]] = nothing
    stop_signal: signal.Signals = signal.SIGTERM
    stop_deadline_sec: float = 30.0


class Process:
    """Keeps one `Program` running; `on_change` is called with it after each change of `state`."""

    def __init__(self, program: Program, on_change: Callable[[Process], None]) -> None:
        self.program = program
        self.state = State.STOPPED
        self.detail = ""
        self.restarts = 0
        self.ready_at: datetime.datetime | None = None
        self._on_change = on_change
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Starts the program and returns when it is ready; from then on it is kept alive. Raises StartError."""
        await self._spawn()
        if not await self._becomes_ready():
            ending = self._ending()
            await self.stop()
            raise StartError(f"{self.program.name} {ending}\n{last_lines(self.program.log_path, 12)}")
        self._keeper = asyncio.create_task(self._keep_alive())

    async def stop(self) -> None:
        """Ends the program: asks first, and kills it when its stop deadline has passed."""
        if self.state is State.STOPPED:
            return
        self._change(State.STOPPING)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        if self._process is not None and self.pid is not None:
            await self.program.before_stop()
            self.send(self.program.stop_signal)
            await self._ended_within(self.program.stop_deadline_sec)
        self._change(State.STOPPED)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the program, if it runs."""
        if self._process is not None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
                self._process.send_signal(number)

    async def _spawn(self) -> None:
        self._change(State.STARTING)
        with self.program.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.program.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.program.environment),
                # Ctrl-C reaches the whole group of the terminal; the order of stopping is ours to decide.
                start_new_session=True,
            )

    async def _becomes_ready(self) -> bool:
        """Waits until the program is ready (true), or has ended or used up its time (false)."""
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.program.start_deadline_sec):
                while self._process.returncode is None:
                    if await self.program.is_ready():
                        self.ready_at = datetime.datetime.now().astimezone()
                        self._change(State.READY)
                        return True
                    await asyncio.sleep(READY_POLL_SEC)
        return False

    async def _keep_alive(self) -> None:
        """Waits for the program's end and starts it again, each time later, until it stays."""
        delay = FIRST_DELAY_SEC
        while True:
            if await self._ready_for() > HEALTHY_AFTER_SEC:
                delay = FIRST_DELAY_SEC
            ending = self._ending()
            await self._ended_within(0)
            self.restarts += 1
            self._change(State.WAITING, f"{ending}; started again in {delay:g} s")
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY_SEC)
            try:
                await self._spawn()
                await self._becomes_ready()
            except OSError as error:  # no memory, no file handle, no log folder: the next try may find better times
                self._change(State.STARTING, str(error))

    async def _ready_for(self) -> float:
        """Waits for the program's end; answers for how many seconds it was ready, 0 when it never was."""
        if self._process is None or self.state is not State.READY:
            return 0
        loop = asyncio.get_running_loop()
        begin = loop.time()
        await self._process.wait()
        return loop.time() - begin

    async def _ended_within(self, seconds: float) -> None:
        """Waits for the end; past the time, kills."""
        assert self._process is not None
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self._process.wait()

    def _ending(self) -> str:
        """How the program ended, in words."""
        code = self._process.returncode if self._process else None
        if code is None:
            return f"was not ready within {self.program.start_deadline_sec:g} s"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def _change(self, state: State, detail: str = "") -> None:
        self.state, self.detail = state, detail
        self._on_change(self)


async def run_to_end(name: str, command: Sequence[str], environment: Mapping[str, str], log_path: pathlib.Path) -> None:
    """Runs a command that does its one thing and ends. Raises StartError when it fails."""
    with log_path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            start_new_session=True,
        )
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.send_signal(signal.SIGINT)  # lets a migration give its lock back
        await process.wait()
        raise
    if code != 0:
        raise StartError(f"{name} ended with status {code}\n{last_lines(log_path, 12)}")
