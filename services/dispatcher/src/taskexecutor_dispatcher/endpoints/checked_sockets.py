"""Opens TCP connections to allowed addresses only: what is judged is what is connected to."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from aiohappyeyeballs import AddrInfoType, start_connection
from aiohttp.abc import AbstractResolver

from taskexecutor_common.egress import EgressPolicy

# The pause before the next address is tried beside one that does not answer: RFC 8305, section 5.
_HEAD_START_SEC = 0.25


class CheckedSockets:
    """Connects to hosts by name or address, after `resolver` and judged by `egress`."""

    def __init__(self, resolver: AbstractResolver, egress: EgressPolicy) -> None:
        self._resolver = resolver
        self._egress = egress

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connected, non-blocking socket. Raises AddressRefused, socket.gaierror or another OSError."""
        family = _family_of_literal(host)
        targets = [_target(family, host, port)] if family is not None else await self._look_up(host, port)
        try:
            return await start_connection(
                targets, happy_eyeballs_delay=_HEAD_START_SEC, interleave=1, socket_factory=self._open
            )
        except RuntimeError as odd:  # what uvloop calls some failures of connects
            raise OSError(str(odd)) from odd
        except OSError:
            self._check_that_one_is_allowed(targets)
            raise

    async def _look_up(self, host: str, port: int) -> list[AddrInfoType]:
        found = await self._resolver.resolve(host, port)
        return [_target(result["family"], result["host"], result["port"]) for result in found]

    def _open(self, target: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = target
        self._egress.check(str(address[0]))
        return socket.socket(family, kind, protocol)

    def _check_that_one_is_allowed(self, targets: list[AddrInfoType]) -> None:
        """The failures of several addresses come back as one that has lost its type."""
        addresses = [str(address[0]) for *_, address in targets]
        if all(self._egress.refusal(address) for address in addresses):
            self._egress.check(addresses[0])


def _target(family: int, address: str, port: int) -> AddrInfoType:
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)


def _family_of_literal(host: str) -> int | None:
    try:
        return socket.AF_INET if ip_address(host).version == 4 else socket.AF_INET6
    except ValueError:
        return None
