"""Sends HTTP deliveries: one client for the process, one request an attempt, no redirects, no proxies, no cookies.

The one exception to "one request": a server may close an idle connection at any moment, and a request that crosses the
closing on its way is lost although nothing was wrong. So a request on a connection that was used before, and that ends
without a byte of an answer, is sent once more, on a fresh connection. What ends a fresh connection is the receiver's
own doing, and the retry policy's to judge. (What the receiver may have read twice carries the same idempotency key.)
"""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache

from aiohttp.abc import AbstractResolver

from taskexecutor_common.clock import Clock
from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.checked_sockets import CheckedSockets
from taskexecutor_dispatcher.endpoints.deadlines import Deadlines
from taskexecutor_dispatcher.endpoints.http_answers import Answer
from taskexecutor_dispatcher.endpoints.http_connection import HttpConnection
from taskexecutor_dispatcher.endpoints.http_connections import HttpConnections
from taskexecutor_dispatcher.endpoints.http_destinations import Destination, Origin
from taskexecutor_dispatcher.endpoints.http_failures import (
    ExchangeFailed,
    NotConnected,
    NothingAnswered,
    OutOfTime,
    ShuttingDown,
    connection_error,
    failed_exchange,
    invalid_destination,
    not_connected,
    timed_out,
    unexpected_status,
)
from taskexecutor_dispatcher.endpoints.http_heads import RequestHeads, UnsendableHeader
from taskexecutor_dispatcher.endpoints.http_pool import HttpPool
from taskexecutor_dispatcher.endpoints.http_rules import (
    BAD_DESTINATION,
    BAD_HEADER,
    DNS_CACHE_SEC,
    KEEP_ALIVE_SEC,
    LARGE_BODY_BYTES,
    SHUTTING_DOWN,
    USER_AGENT,
    verifying_tls,
)
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses, RememberedAddresses, SystemResolver
from taskexecutor_dispatcher.endpoints.retry_after import retry_after_ms

# Parsed URLs that are remembered. Those with inputs in them come once and push each other out, which is no harm.
_REMEMBERED_URLS = 1024


class HttpTransport:
    """The Transport of HTTP endpoints. Made inside the running event loop; closed by `close`.

    `clock` gives the timestamps that receivers check, and the present for a Retry-After date without a Date beside it.
    `max_connections` and `max_connections_per_host` bound the pool, 0: unbounded. A delivery that waits for a free
    connection spends its own time, so the total should not be below the number of deliveries that may be in flight.
    `tls` verifies receivers, by default against the system's certificate authorities.
    """

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        clock: Clock,
        max_connections: int = 0,
        max_connections_per_host: int = 0,
        keep_alive_sec: float = KEEP_ALIVE_SEC,
        user_agent: str = USER_AGENT,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._destination = lru_cache(_REMEMBERED_URLS)(Destination.parse)
        self._heads = RequestHeads(user_agent)
        allowed = AllowedAddresses(resolver or SystemResolver(), egress)
        self._resolver = RememberedAddresses(allowed, DNS_CACHE_SEC, clock.monotonic)
        self._pool = HttpPool(
            HttpConnections(CheckedSockets(self._resolver, egress), tls or verifying_tls()),
            keep_alive_sec=keep_alive_sec,
            max_connections=max_connections,
            max_per_origin=max_connections_per_host,
        )
        self._connecting = Deadlines()

    async def deliver(self, request: HttpRequest, identity: DeliveryIdentity, timeout_ms: int) -> Outcome:
        """Sends once; `timeout_ms` covers all from the name lookup to the last byte of the answer."""
        if self._connecting.are_over:
            return connection_error(SHUTTING_DOWN)
        try:
            destination = self._destination(request.url)
            head = self._heads.write(request, identity, self._clock.epoch_ms() // 1000, destination)
        except UnsendableHeader:
            return invalid_destination(BAD_HEADER)
        except ValueError:
            return invalid_destination(BAD_DESTINATION)
        origin = destination.origin
        deadline = self._loop.time() + timeout_ms / 1000
        try:
            answer = await self._send(origin, head, request.body or b"", deadline)
        except OutOfTime as late:
            return timed_out(late.what_is_missing, timeout_ms)
        except NotConnected as failure:
            return not_connected(failure, origin)
        except ExchangeFailed as failure:
            return failed_exchange(failure, origin)
        except ShuttingDown:
            return connection_error(SHUTTING_DOWN)
        return self._outcome(answer, request.expected_status_codes)

    async def close(self) -> None:
        """Closes all connections; in-flight deliveries fail."""
        await self._connecting.end_all()
        self._pool.close(ShuttingDown())
        await self._resolver.close()

    async def _send(self, origin: Origin, head: bytes, body: bytes, deadline: float) -> Answer:
        """Sends on a kept connection if there is one, and at most once more."""
        connection = self._pool.take(origin) or await self._open(origin, deadline, needs_fresh=False)
        try:
            return await self._exchange(connection, head, body, deadline)
        except NothingAnswered:  # only connections that were used before raise this
            fresh = await self._open(origin, deadline, needs_fresh=True)
            return await self._exchange(fresh, head, body, deadline)

    async def _open(self, origin: Origin, deadline: float, *, needs_fresh: bool) -> HttpConnection:
        if self._connecting.are_over:
            raise ShuttingDown
        try:
            async with self._connecting.within(deadline - self._loop.time()):
                return await self._pool.open(origin, needs_fresh=needs_fresh)
        except TimeoutError:
            if self._connecting.are_over:
                raise ShuttingDown from None
            raise OutOfTime("No connection came about") from None

    async def _exchange(self, connection: HttpConnection, head: bytes, body: bytes, deadline: float) -> Answer:
        is_large = len(body) > LARGE_BODY_BYTES
        answer = connection.send(head if is_large else head + body, deadline)
        try:
            if is_large:
                await connection.send_body(body)
            received = await answer
        except BaseException:
            connection.abort()
            _let_go(answer)
            raise
        self._pool.give_back(connection)
        return received

    def _outcome(self, answer: Answer, expected: frozenset[int]) -> Outcome:
        output = {"status_code": answer.status, **answer.body.to_json()}
        if answer.status in expected and not answer.is_unasked:
            return Outcome(output=output)
        headers = {"Retry-After": answer.header(b"retry-after"), "Date": answer.header(b"date")}
        return Outcome(
            output=output,
            error=unexpected_status(answer.status, is_unasked=answer.is_unasked),
            retry_after_ms=retry_after_ms(headers, self._clock.now()),
        )


def _let_go(answer: asyncio.Future[Answer]) -> None:
    """Nobody waits for it any more; asyncio complains about failures that nobody has looked at."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()
