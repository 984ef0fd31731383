"""Sends HTTP deliveries over aiohttp: the reference that http.py is held against, and a way out should it ever fail.

The same tests pass with both, so what is written there holds here: one request an attempt, sent once more when a
reused connection ended without a word, no redirects, no proxies, no cookies.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver
from aiohttp.connector import AddrInfoType
from yarl import URL

from taskexecutor_common.clock import Clock
from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.bodies import DRAINED_BYTES, KEPT_BYTES, Body, named_charset
from taskexecutor_dispatcher.endpoints.http_aiohttp_exchange import DeliveryRequest, Exchange
from taskexecutor_dispatcher.endpoints.http_destinations import Origin, parse_url
from taskexecutor_dispatcher.endpoints.http_failures import (
    AnswerCut,
    AnswerNotHttp,
    ConnectionLost,
    ExchangeFailed,
    NotConnected,
    connection_error,
    failed_exchange,
    invalid_destination,
    not_connected,
    timed_out,
    unexpected_status,
)
from taskexecutor_dispatcher.endpoints.http_headers import delivery_headers
from taskexecutor_dispatcher.endpoints.http_rules import (
    BAD_DESTINATION,
    BAD_HEADER,
    BAD_URL,
    DNS_CACHE_SEC,
    KEEP_ALIVE_SEC,
    LARGE_BODY_BYTES,
    SHUTTING_DOWN,
    USER_AGENT,
    verifying_tls,
)
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses, SystemResolver
from taskexecutor_dispatcher.endpoints.retry_after import retry_after_ms

# The deadline is set around the whole delivery instead.
_NO_TIMEOUT = ClientTimeout(total=None, sock_connect=None)
# The first is set to something else, the second is the user's to set.
_NO_AUTO_HEADERS = ("Accept-Encoding", "Content-Type")


class AiohttpTransport:
    """The Transport of HTTP endpoints, with the parameters of HttpTransport.

    The bounds of the pool count the connections in use; idle ones come on top.
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
        self._egress = egress
        self._clock = clock
        self._user_agent = user_agent
        self._resolver = AllowedAddresses(resolver or SystemResolver(), egress)
        self._session = ClientSession(
            connector=TCPConnector(
                limit=max_connections,
                limit_per_host=max_connections_per_host,
                keepalive_timeout=keep_alive_sec,
                ttl_dns_cache=int(DNS_CACHE_SEC),
                resolver=self._resolver,
                socket_factory=self._open_socket,
                ssl=tls or verifying_tls(),
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
            return connection_error(SHUTTING_DOWN)
        try:
            url = parse_url(request.url)
            headers = delivery_headers(request, identity, self._clock.epoch_ms() // 1000, self._user_agent)
        except ValueError:
            return invalid_destination(BAD_DESTINATION)
        exchange = Exchange()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._exchange(exchange, request, url, headers)
        except TimeoutError:
            return timed_out(exchange.what_is_missing(), timeout_ms)
        except asyncio.CancelledError:
            if self._session.closed and not _is_cancelled():  # closing the client cancels what waits inside it
                return connection_error(SHUTTING_DOWN)
            raise
        except InvalidURL:
            return invalid_destination(BAD_URL)
        except (ClientError, ExchangeFailed, OSError) as failure:  # before ValueError: certificate errors are both
            return _failed(failure, Origin.of(url))
        except ValueError:
            return invalid_destination(BAD_HEADER)
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
            retry_after_ms=retry_after_ms(response.headers, self._clock.now()),
        )

    def _open_socket(self, addr_info: AddrInfoType) -> socket.socket:
        """Opens the socket of every connect the client makes, be its address a literal, looked up or cached: what is
        checked here is what is connected to."""
        family, kind, protocol, _, address = addr_info
        self._egress.check(str(address[0]))
        return socket.socket(family, kind, protocol)


async def read_body(response: ClientResponse) -> Body:
    """Reads the body up to the bounds. The caller closes the response, which costs its connection if there is more."""
    kept = bytearray()
    seen = 0
    async for chunk in response.content.iter_any():
        seen += len(chunk)
        kept += chunk[: KEPT_BYTES - len(kept)]
        if seen > KEPT_BYTES + DRAINED_BYTES:
            break
    content_type = response.headers.get("Content-Type", "")
    return Body(bytes(kept), truncated=seen > KEPT_BYTES, charset=named_charset(content_type))


def _failed(failure: Exception, origin: Origin) -> Outcome:
    """The outcome for whatever aiohttp raised while it connected, sent or read."""
    if isinstance(failure, ClientConnectorCertificateError) and isinstance(failure.certificate_error, OSError):
        return not_connected(NotConnected(failure.certificate_error), origin)
    if isinstance(failure, ClientConnectorError):
        return not_connected(NotConnected(failure.os_error), origin)
    if isinstance(failure, ClientPayloadError):
        return failed_exchange(AnswerCut(), origin)
    if isinstance(failure, ClientResponseError):
        return failed_exchange(AnswerNotHttp(), origin)
    return failed_exchange(ConnectionLost(), origin)


def _sendable(body: bytes | None) -> bytes | io.BytesIO | None:
    """Large bodies as a stream, which the client writes in pieces, so that other deliveries get their turn."""
    return io.BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
