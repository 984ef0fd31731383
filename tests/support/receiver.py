"""An HTTP receiver that does what a test says and remembers every request; it runs in a thread and loop of its own.

with running_receiver() as receiver:
    receiver.script("/hook", Answer(503), Answer(503), Answer(200))   # the last one answers from then on
    ...                                                               # something sends to receiver.url("/hook")
    assert len(receiver.requests("/hook")) == 3
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

_START_DEADLINE_SEC = 10.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came in."""

    at: datetime
    """Wall clock, UTC, when its head was read."""
    method: str
    target: str
    """Path and query, as sent."""
    headers: Mapping[str, str]
    """Names in any case."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def key(self) -> str:
        """Its `Idempotency-Key`."""
        return self.headers["Idempotency-Key"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver does with one request."""

    status: int = 200
    body: bytes | Callable[[Received], bytes] = b"ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_sec: float = 0.0
    """Waits this long before it answers."""
    hangs: bool = False
    """Never answers; ends when the sender goes away."""
    raw: bytes | None = None
    """Sends just these bytes, an answer or not, and hangs up."""


OK = Answer()


class Receiver:
    """See the module. All methods may be called from any thread."""

    def __init__(self) -> None:
        self.port = 0
        self._scripts: dict[str, deque[Answer]] = {}
        self._choosers: dict[str, Callable[[Received], Answer]] = {}
        self._received: dict[str, list[Received]] = defaultdict(list)
        self._open: Counter[str] = Counter()
        self._most_open: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def script(self, path: str, *answers: Answer) -> None:
        """What requests to `path` get, one after the other; the last answer stays. Without a script: 200 `ok`."""
        with self._lock:
            self._scripts[path] = deque(answers)

    def choose(self, path: str, chooser: Callable[[Received], Answer]) -> None:
        """Lets `chooser` decide about each request to `path`; it is called in the receiver's thread."""
        with self._lock:
            self._choosers[path] = chooser

    def requests(self, path: str) -> list[Received]:
        """All requests to a path so far, in the order of their arrival."""
        with self._lock:
            return list(self._received[path])

    def most_at_once(self, path: str) -> int:
        """How many requests to a path have been under way at the same time so far, at most."""
        with self._lock:
            return self._most_open[path]

    def start(self) -> None:
        """Listens on a free port of 127.0.0.1."""
        self._thread.start()
        assert self._ready.wait(_START_DEADLINE_SEC), "the receiver did not start"

    def stop(self) -> None:
        """Answers nothing any more; what hangs is cut."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        runner = web.ServerRunner(web.Server(self._answer, handler_cancellation=True), shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        at = datetime.fromtimestamp(time.time(), UTC)
        received = Received(at, request.method, request.raw_path, request.headers.copy(), await request.read())
        answer = self._note(request.path, received)
        try:
            if answer.hangs:
                await asyncio.Event().wait()
            if answer.delay_sec:
                await asyncio.sleep(answer.delay_sec)
        finally:
            self._end(request.path)
        if answer.raw is not None:
            assert request.transport is not None
            request.transport.write(answer.raw)
            request.transport.close()
        body = answer.body(received) if callable(answer.body) else answer.body
        return web.Response(status=answer.status, body=body, headers=answer.headers)

    def _note(self, path: str, received: Received) -> Answer:
        with self._lock:
            self._received[path].append(received)
            self._open[path] += 1
            self._most_open[path] = max(self._most_open[path], self._open[path])
            if chooser := self._choosers.get(path):
                return chooser(received)
            script = self._scripts.get(path)
            if not script:
                return OK
            return script.popleft() if len(script) > 1 else script[0]

    def _end(self, path: str) -> None:
        with self._lock:
            self._open[path] -= 1


@contextlib.contextmanager
def running_receiver() -> Iterator[Receiver]:
    """A receiver that listens inside the block."""
    receiver = Receiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()
