"""Sends HTTP deliveries: one client for the process, one request an attempt, no redirects, no proxies, no cookies."""

from __future__ import annotations

import asyncio
import io
import re
import socket
import ssl
from importlib.metadata import version

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, InvalidURL, TCPConnector
from aiohttp.abc import AbstractResolver
from aiohttp.connector import AddrInfoType
from yarl import URL

from taskexecutor_common.clock import Clock
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.bodies import Body, read_body
from taskexecutor_dispatcher.endpoints.egress import EgressPolicy
from taskexecutor_dispatcher.endpoints.http_connections import ConnectionLost, DeliveryRequest, Exchange
from taskexecutor_dispatcher.endpoints.http_failures import (
    connection_error,
    failed_exchange,
    invalid_destination,
    timed_out,
    unexpected_status,
)
from taskexecutor_dispatcher.endpoints.http_headers import delivery_headers
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses, SystemResolver
from taskexecutor_dispatcher.endpoints.retry_after import retry_after_ms

USER_AGENT = f"TaskExecutor/{version('taskexecutor-dispatcher')}"

# Below the shortest default among common servers (gunicorn closes idle connections after 2 s, Node.js, uvicorn and
# Apache after 5 s), so that the crossing described in http_connections.py is rare to begin with.
KEEP_ALIVE_SEC = 1.5
DNS_CACHE_SEC = 10

# What a URL consists of when it is already encoded; such a URL goes out to the letter, since it may be signed.
_ENCODED_URL = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~|]+")
# The deadline is set around the whole delivery instead.
_NO_TIMEOUT = ClientTimeout(total=None, sock_connect=None)
# The first is set to something else, the second is the user's to set.
_NO_AUTO_HEADERS = ("Accept-Encoding", "Content-Type")
_LARGE_BODY_BYTES = 256 * 1024
_CLOSING = "The dispatcher is shutting down."


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
        user_agent: str = USER_AGENT,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._egress = egress
        self._now = clock.now
        self._user_agent = user_agent
        self._resolver = AllowedAddresses(resolver or SystemResolver(), egress)
        self._session = ClientSession(
            connector=TCPConnector(
                limit=max_connections,
                limit_per_host=max_connections_per_host,
                keepalive_timeout=KEEP_ALIVE_SEC,
                ttl_dns_cache=DNS_CACHE_SEC,
                resolver=self._resolver,
                socket_factory=self._open_socket,
                ssl=tls or _verifying_tls(),
            ),
            request_class=DeliveryRequest,
            cookie_jar=DummyCookieJar(),
            timeout=_NO_TIMEOUT,
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_NO_AUTO_HEADERS,
        )

    async def deliver(self, request: HttpRequest, identity: DeliveryIdentity, timeout_ms: int) -> Outcome:
        """Sends once; `timeout_ms` covers all from the name lookup to the last byte of the answer."""
        if self._session.closed:
            return connection_error(_CLOSING)
        try:
            url = _destination(request.url)
            headers = delivery_headers(request, identity, self._now(), self._user_agent)
        except ValueError:
            return invalid_destination("The URL or the signing secret is not valid.")
        exchange = Exchange()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._exchange(exchange, request, url, headers)
        except TimeoutError:
            return timed_out(exchange.describe_progress(), timeout_ms)
        except asyncio.CancelledError:
            if self._session.closed and not _is_cancelled():  # closing the client cancels what waits inside it
                return connection_error(_CLOSING)
            raise
        except InvalidURL:
            return invalid_destination("The URL is not valid.")
        except (ClientError, ConnectionLost, OSError) as failure:  # before ValueError: certificate errors are both
            return failed_exchange(failure, url)
        except ValueError:
            return invalid_destination("A header cannot be sent over HTTP.")
        finally:
            exchange.close()

    async def close(self) -> None:
        """Closes all connections; in-flight deliveries fail."""
        await self._session.close()
        await self._resolver.close()

    async def _exchange(
        self, exchange: Exchange, request: HttpRequest, url: URL, headers: list[tuple[str, str]]
    ) -> Outcome:
        response = await self._session.request(
            request.method,
            url,
            headers=headers,
            data=_sendable(request.body),
            allow_redirects=False,
            middlewares=(exchange.send,),
        )
        body = await read_body(response)
        return self._outcome(response, body, request.expected_status_codes)

    def _outcome(self, response: ClientResponse, body: Body, expected: frozenset[int]) -> Outcome:
        output = {"status_code": response.status, **body.to_json()}
        if response.status in expected:
            return Outcome(output=output)
        return Outcome(
            output=output,
            error=unexpected_status(response.status),
            retry_after_ms=retry_after_ms(response.headers, self._now()),
        )

    def _open_socket(self, addr_info: AddrInfoType) -> socket.socket:
        """Opens the socket of every connect the client makes, be its address a literal, looked up or cached: what is
        checked here is what is connected to."""
        family, kind, protocol, _, address = addr_info
        self._egress.check(str(address[0]))
        return socket.socket(family, kind, protocol)


def _destination(text: str) -> URL:
    """The URL to send to. Raises ValueError."""
    url = URL(text, encoded=_ENCODED_URL.fullmatch(text) is not None)
    if url.scheme not in ("http", "https") or not url.raw_host or url.port is None:
        raise ValueError("not an absolute http or https URL")
    return url


def _sendable(body: bytes | None) -> bytes | io.BytesIO | None:
    """Large bodies as a stream, which the client writes in pieces, so that other deliveries get their turn."""
    return io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY_BYTES else body


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _verifying_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
