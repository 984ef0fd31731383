"""Name resolution for deliveries: in threads of its own, and only to addresses that may be connected to."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

from taskexecutor_dispatcher.endpoints.egress import EgressPolicy

# getaddrinfo blocks its thread for as long as a dead name server lets it. The event loop's own pool has about as many
# threads as the machine has cores; with these, a handful of dead names does not stop the resolution of living ones.
_THREADS = 64
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class SystemResolver(AbstractResolver):
    """Resolves as the operating system does (hosts file, search domains, resolv.conf)."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All stream addresses of `host`, in the system's order. Raises socket.gaierror."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=_NUMERIC)
            for kind, address in found
        ]

    async def close(self) -> None:
        """Lets go of the threads; a lookup that hangs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class AllowedAddresses(AbstractResolver):
    """Leaves out the addresses that the egress policy forbids, so that those it allows are tried alone.

    This makes the failure say the right thing. The guard itself stands where sockets are opened.
    """

    def __init__(self, inner: AbstractResolver, egress: EgressPolicy) -> None:
        self._inner = inner
        self._egress = egress

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The allowed addresses of `host`, at least one. Raises AddressRefused when it has others only, and gaierror."""
        found = await self._inner.resolve(host, port, family)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        allowed = [result for result in found if self._egress.refusal(result["host"]) is None]
        if not allowed:
            self._egress.check(found[0]["host"])
        return allowed

    async def close(self) -> None:
        """Closes the inner resolver."""
        await self._inner.close()


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError:  # a label that is empty or longer than 63 characters
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
    return [(kind, str(address[0])) for kind, _, _, _, address in found]
