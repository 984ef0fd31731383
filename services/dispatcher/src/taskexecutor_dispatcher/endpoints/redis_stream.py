"""Adds entries to Redis Streams: one XADD an attempt, over connections that are kept per server."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver
from redis.exceptions import AskError, MovedError, RedisError

from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.redis_stream import RedisStreamRequest
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.checked_sockets import CheckedSockets
from taskexecutor_dispatcher.endpoints.deadlines import Deadlines
from taskexecutor_dispatcher.endpoints.redis_connections import RedisConnections
from taskexecutor_dispatcher.endpoints.redis_failures import (
    connection_error,
    failed_command,
    invalid_destination,
    not_redis,
    timed_out,
)
from taskexecutor_dispatcher.endpoints.redis_urls import RedisServer
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses, SystemResolver
from taskexecutor_dispatcher.endpoints.shared_clients import SharedClients

MAX_SERVERS = 64
IDLE_SEC = 60.0
MAX_CONNECTIONS_PER_SERVER = 50
# A slot that is being moved while we look for it costs two; more say that the cluster does not know itself.
_MAX_REDIRECTS = 5
_ENTRY_ID = re.compile(r"[0-9]+-[0-9]+")
_CLOSING = "The dispatcher is shutting down."


class RedisStreamTransport:
    """The Transport of Redis Stream endpoints. Made inside the running event loop; closed by `close`.

    `max_servers` bounds the servers (by address, database and credentials) to which connections are kept, except that
    those in use are never closed; `max_connections_per_server` those to each. A delivery that waits for a free
    connection spends its own time. `tls` verifies the servers of rediss URLs, by default against the system's
    certificate authorities.
    """

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        max_servers: int = MAX_SERVERS,
        max_connections_per_server: int = MAX_CONNECTIONS_PER_SERVER,
        idle_sec: float = IDLE_SEC,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._resolver = AllowedAddresses(resolver or SystemResolver(), egress)
        self._sockets = CheckedSockets(self._resolver, egress)
        self._tls = tls or ssl.create_default_context()
        self._max_connections = max_connections_per_server
        self._servers = SharedClients(self._connections_to, limit=max_servers, idle_sec=idle_sec)
        self._deadlines = Deadlines()

    async def deliver(self, request: RedisStreamRequest, identity: DeliveryIdentity, timeout_ms: int) -> Outcome:
        """Adds one entry; `timeout_ms` covers all from the name lookup to the entry's id. `identity` is not sent: an
        entry holds the user's fields and nothing else."""
        if self._deadlines.are_over:
            return connection_error(_CLOSING)
        try:
            exchange = _Exchange(RedisServer.parse(request.redis_url), _xadd(request))
        except ValueError as fault:
            return invalid_destination(f"The Redis URL {fault}.")
        try:
            async with self._deadlines.within(timeout_ms / 1000):
                message_id = await self._run(exchange)
        except TimeoutError:
            if self._deadlines.are_over:
                return connection_error(_CLOSING)
            return timed_out(exchange.describe_progress(), timeout_ms)
        except RedisError as failure:
            return failed_command(failure, exchange.server)
        except UnicodeEncodeError:
            return invalid_destination("The stream or a field cannot be written in UTF-8.")
        except (ValueError, IndexError):  # what the library raises over a redirection or text that it cannot read
            return not_redis(exchange.server)
        if not isinstance(message_id, str) or not _ENTRY_ID.fullmatch(message_id):
            return connection_error(f"What {exchange.server.place} answered is not the id of an entry.")
        return Outcome(output={"message_id": message_id, "stream": request.stream})

    async def close(self) -> None:
        """Closes all connections; in-flight deliveries fail."""
        await self._deadlines.end_all()
        await self._servers.close()
        await self._resolver.close()

    async def _run(self, exchange: _Exchange) -> object:
        """The answer to the command, from the node of the cluster that has the stream. A node that names another one
        has not done anything, so going there repeats nothing."""
        for _ in range(_MAX_REDIRECTS):
            try:
                return await self._run_at(exchange)
            except AskError as elsewhere:  # MovedError is one, too
                exchange.turn_to(elsewhere)
        return await self._run_at(exchange)

    async def _run_at(self, exchange: _Exchange) -> object:
        with self._servers.borrow(exchange.server) as connections:
            async with connections.one() as connection:
                if exchange.is_asking:
                    await connection.send_command("ASKING")
                    await connection.read_response()
                exchange.is_sent = True
                await connection.send_command(*exchange.command)
                answer: object = await connection.read_response()
                return answer

    def _connections_to(self, server: RedisServer) -> RedisConnections:
        return RedisConnections(server, self._sockets, self._tls, max_connections=self._max_connections)


@dataclass(slots=True, repr=False)
class _Exchange:
    """One delivery's way to the server."""

    server: RedisServer
    command: tuple[str | int, ...]
    is_sent: bool = False
    is_asking: bool = False
    """The node has the stream's slot only in part, and answers for it when asked so (Redis Cluster specification)."""

    def turn_to(self, elsewhere: AskError) -> None:
        self.server = self.server.at(elsewhere.host, elsewhere.port)
        self.is_asking = not isinstance(elsewhere, MovedError)
        self.is_sent = False

    def describe_progress(self) -> str:
        """What a delivery that ran out of time had not got."""
        return "Redis did not answer" if self.is_sent else "No connection came about"


def _xadd(request: RedisStreamRequest) -> tuple[str | int, ...]:
    trimming: tuple[str | int, ...] = ()
    if request.max_len is not None:
        trimming = ("MAXLEN", "~" if request.approximate else "=", request.max_len)
    fields = [text for field in request.fields for text in field]
    return ("XADD", request.stream, *trimming, "*", *fields)
