"""Where Kafka records may go, as far as librdkafka lets itself be told: it resolves and connects by itself.

The bootstrap servers are resolved and judged here, and librdkafka gets the judged addresses instead of the names, so that
is where it goes first. What the cluster advertises is judged before a record is produced; but librdkafka may have
connected there by then, and resolves those names anew whenever it reconnects. See docs/delivery-kafka.md.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable

from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses

DEFAULT_PORT = 9092

_SERVER = re.compile(
    r"(?:PLAINTEXT://)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]@]+))(?::(?P<port>\d{1,5}))?", re.IGNORECASE
)


def parse_servers(text: str) -> list[tuple[str, int]]:
    """Reads `host[:port],host[:port]`, each with or without `PLAINTEXT://`.

    Raises ValueError with what is wrong, to be read after "bootstrap_servers"; it never shows them.
    """
    servers = []
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        found = _SERVER.fullmatch(entry)
        if found is None:
            raise ValueError("must be host:port, or several of them separated by commas; no TLS or SASL yet")
        servers.append((found["v6"] or found["host"], _port(found["port"])))
    if not servers:
        raise ValueError("must name at least one server")
    return servers


class BrokerGate:
    """Resolves brokers and refuses those that may not be reached."""

    def __init__(self, resolver: AllowedAddresses) -> None:
        self._resolver = resolver

    async def resolve(self, servers: list[tuple[str, int]]) -> str:
        """The allowed addresses of the servers that have any, as `bootstrap.servers`.

        Raises AddressRefused when one of the servers has other addresses only, and gaierror when none has an address:
        the others do while one is gone.
        """
        found = await asyncio.gather(*(self._addresses(*server) for server in servers))
        addresses = list(dict.fromkeys(address for each in found for address in each))
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        return ",".join(addresses)

    async def check(self, hosts: Iterable[str]) -> None:
        """Raises AddressRefused when one of these hosts may not be reached. One that is unknown harms nobody."""
        await asyncio.gather(*(self._addresses(host, DEFAULT_PORT) for host in set(hosts)))

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolver.resolve(host, port)
        except socket.gaierror:
            return []
        return [_place(result["host"], port) for result in found]


def _port(digits: str | None) -> int:
    port = int(digits) if digits else DEFAULT_PORT
    if not 0 < port < 65536:
        raise ValueError("must have ports from 1 to 65535")
    return port


def _place(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
