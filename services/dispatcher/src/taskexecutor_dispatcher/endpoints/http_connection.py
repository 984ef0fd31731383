"""One HTTP/1.1 connection to a receiver: writes a request, waits for its answer, and knows whether it may carry another.

A protocol of the event loop, without streams, and without a task or a timer of its own for a request, since all
deliveries go through here.
"""

from __future__ import annotations

import asyncio
import fcntl
import termios
from collections.abc import Callable
from typing import cast

from taskexecutor_dispatcher.endpoints.http_answers import HEAD_BYTES, Answer, AnswerReader
from taskexecutor_dispatcher.endpoints.http_destinations import Origin
from taskexecutor_dispatcher.endpoints.http_failures import ExchangeFailed, NothingAnswered, OutOfTime

_PIECE_BYTES = 64 * 1024
_CLOCK_GRAIN_SEC = 0.001  # uvloop's timers and its time are in whole milliseconds
_NO_BYTES = (0).to_bytes(4)


class HttpConnection(asyncio.Protocol):
    """A place in the pool, connected by HttpConnections; carries one request at a time.

    `send` begins an exchange and returns its future. Whoever awaits that calls `abort` when it fails, and gives the
    connection back to the pool when it does not. `on_lost` is called when the connection is over.
    """

    def __init__(self, origin: Origin, on_lost: Callable[[HttpConnection], None]) -> None:
        self.origin = origin
        self.is_connected = False
        self.idle_since = 0.0
        """When the last exchange ended, on the loop's clock; kept by the pool."""
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._fileno: int
        self._reader = AnswerReader()
        self._answer: asyncio.Future[Answer] | None = None
        self._deadline = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._resumed: asyncio.Future[None] | None = None
        # A receiver may speak first, say to tell that it is overloaded. That is read as its answer, without asking.
        self._early = bytearray()
        self._spoke_first = False
        self._ended_in_good_order = False
        self._is_reused = False
        self._is_used_up = False

    # --- what deliveries and the pool call ---

    def send(self, request: bytes, deadline: float) -> asyncio.Future[Answer]:
        """Writes a request and returns its answer to be: an Answer, an ExchangeFailed, or OutOfTime at `deadline`,
        an instant on the loop's clock."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answer = answer
        self._deadline = deadline
        self._reader.begin()
        if self._early:
            self._spoke_first = True
            self.data_received(bytes(self._early))
        if self._is_used_up:
            self._end(in_good_order=self._ended_in_good_order)
            return answer
        # The alarm of an earlier request is left to go off, and is then set anew: answers rarely need that long.
        if self._alarm is None or self._alarm_at > deadline:
            self._set_alarm()
        if not self._spoke_first:
            self._transport.write(request)
        return answer

    async def send_body(self, body: bytes) -> None:
        """Writes the body of the request that `send` began, in pieces, as fast as the receiver takes them. An answer
        that comes before the end is the answer: the rest stays unsent, and nothing more can be sent here."""
        answer = self._answer
        assert answer is not None
        if self._spoke_first:
            return
        pieces = memoryview(body)
        for start in range(0, len(body), _PIECE_BYTES):
            if answer.done():
                self._is_used_up = True
                return
            self._transport.write(pieces[start : start + _PIECE_BYTES])
            if self._resumed is None:
                await asyncio.sleep(0)
            else:
                await asyncio.wait((answer, self._resumed), return_when=asyncio.FIRST_COMPLETED)

    def may_be_reused(self) -> bool:
        """True when the exchange left nothing behind: all was sent, the answer ended where it said, and neither side
        wants to close."""
        return not (
            self._is_used_up
            or self._spoke_first
            or self._reader.is_last
            or self._resumed is not None
            or self._transport.is_closing()
        )

    def keep(self) -> None:
        """Makes the connection an idle one, which the other side may close at any time."""
        self._is_reused = True
        self._early.clear()
        self._answer = None

    def is_quiet(self) -> bool:
        """True when nothing has come in while it was idle, not even as far as the kernel: what came unasked is no
        answer to what is sent next."""
        if self._is_used_up or self._transport.is_closing():
            return False
        return fcntl.ioctl(self._fileno, termios.FIONREAD, _NO_BYTES) == _NO_BYTES

    def fail(self, failure: Exception) -> None:
        """Ends the exchange under way, if there is one."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(failure)

    def close(self) -> None:
        """Ends an idle connection in good order."""
        self._is_used_up = True
        self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._is_used_up = True
        self._transport.abort()

    # --- what the event loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there, with TLS if that is wanted."""
        self._transport = cast(asyncio.Transport, transport)
        self._fileno = transport.get_extra_info("socket").fileno()
        self.is_connected = True

    def data_received(self, data: bytes) -> None:
        """Some of an answer, or something that nobody asked for."""
        answer = self._answer
        if answer is None and not self._is_reused and len(self._early) < HEAD_BYTES:
            self._early += data
            return
        if answer is None or answer.done():
            self.abort()
            return
        try:
            received = self._reader.feed(data)
        except ExchangeFailed as failure:
            answer.set_exception(failure)
        else:
            if received is not None:
                self._settle(answer, received)

    def eof_received(self) -> None:
        """The other side closes, and so do we."""
        self._is_used_up = True
        self._end(in_good_order=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over; `exc` is None when it ended in good order."""
        self._is_used_up = True
        if self._alarm is not None:
            self._alarm.cancel()
        self.resume_writing()
        self._end(in_good_order=exc is None)
        self._on_lost(self)

    def pause_writing(self) -> None:
        """The receiver does not keep up."""
        self._resumed = self._loop.create_future()

    def resume_writing(self) -> None:
        """The receiver has caught up."""
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    # --- the exchange ---

    def _end(self, *, in_good_order: bool) -> None:
        """Settles the exchange that the end of the connection finds open."""
        self._ended_in_good_order = in_good_order
        answer = self._answer
        if answer is None or answer.done():
            return
        try:
            if self._is_reused and not self._reader.received:
                raise NothingAnswered
            self._settle(answer, self._reader.end(in_good_order=in_good_order))
        except ExchangeFailed as failure:
            answer.set_exception(failure)

    def _settle(self, answer: asyncio.Future[Answer], received: Answer) -> None:
        answer.set_result(received._replace(is_unasked=True) if self._spoke_first else received)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = self._deadline
        self._alarm = self._loop.call_at(self._deadline, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        if self._answer is None or self._answer.done():
            return
        if self._loop.time() + _CLOCK_GRAIN_SEC < self._deadline:
            self._set_alarm()
        else:
            self._answer.set_exception(OutOfTime.after_sending(self._reader.status))
