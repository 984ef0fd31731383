"""Name resolution for deliveries: in threads of its own, and only to addresses that may be connected to."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from taskexecutor_common.egress import EgressPolicy

# getaddrinfo blocks its thread for as long as a dead name server lets it. The event loop's own pool has about as many
# threads as the machine has cores; with these, a handful of dead names does not stop the resolution of living ones.
_THREADS = 64
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_REMEMBERED_NAMES = 4096


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


@dataclass(slots=True)
class _Lookup:
    """A name's addresses, wanted or known. A task of its own, so that whoever gives up waiting takes nobody along."""

    found: asyncio.Task[list[ResolveResult]]
    good_until: float = math.inf
    uses: int = 0


class RememberedAddresses(AbstractResolver):
    """Looks a name up once for all that want it, and keeps what was found for `keep_sec`; failures are not kept.

    Each use begins with another of the addresses, so that they share the connections. `monotonic` is in seconds.
    """

    def __init__(self, inner: AbstractResolver, keep_sec: float, monotonic: Callable[[], float]) -> None:
        self._inner = inner
        self._keep_sec = keep_sec
        self._monotonic = monotonic
        self._lookups: dict[tuple[str, int, int], _Lookup] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`. Raises what the inner resolver raises."""
        lookup = self._lookup(host, port, family)
        found = await asyncio.shield(lookup.found)
        first = lookup.uses % len(found) if found else 0
        lookup.uses += 1
        return found[first:] + found[:first]

    async def close(self) -> None:
        """Ends the lookups under way and closes the inner resolver."""
        for lookup in self._lookups.values():
            lookup.found.cancel()
        self._lookups.clear()
        await self._inner.close()

    def _lookup(self, host: str, port: int, family: socket.AddressFamily) -> _Lookup:
        key = (host, port, family)
        known = self._lookups.get(key)
        if known is not None and self._monotonic() < known.good_until:
            return known
        self._lookups.pop(key, None)
        if len(self._lookups) >= _REMEMBERED_NAMES:
            del self._lookups[next(iter(self._lookups))]
        lookup = _Lookup(asyncio.create_task(self._inner.resolve(host, port, family)))
        lookup.found.add_done_callback(lambda _: self._expire(lookup))
        self._lookups[key] = lookup
        return lookup

    def _expire(self, lookup: _Lookup) -> None:
        failed = lookup.found.cancelled() or lookup.found.exception() is not None
        lookup.good_until = 0 if failed else self._monotonic() + self._keep_sec


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError:  # a label that is empty or longer than 63 characters
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
    return [(kind, str(address[0])) for kind, _, _, _, address in found]
