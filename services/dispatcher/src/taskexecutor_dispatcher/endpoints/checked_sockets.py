"""Opens TCP connections to allowed addresses only: what is judged is what is connected to."""

from __future__ import annotations

import socket

from aiohappyeyeballs import AddrInfoType, start_connection

from taskexecutor_dispatcher.endpoints.egress import EgressPolicy
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses

# The pause before the next address is tried beside one that does not answer: RFC 8305, section 5.
_HEAD_START_SEC = 0.25


class CheckedSockets:
    """Connects to hosts by name or address, after `resolver` and judged by `egress`."""

    def __init__(self, resolver: AllowedAddresses, egress: EgressPolicy) -> None:
        self._resolver = resolver
        self._egress = egress

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connected, non-blocking socket. Raises AddressRefused, socket.gaierror or another OSError."""
        found = await self._resolver.resolve(host, port)
        targets: list[AddrInfoType] = [
            (result["family"], socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (result["host"], result["port"]))
            for result in found
        ]
        return await start_connection(
            targets, happy_eyeballs_delay=_HEAD_START_SEC, interleave=1, socket_factory=self._open
        )

    def _open(self, target: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = target
        self._egress.check(str(address[0]))
        return socket.socket(family, kind, protocol)
