"""A peer as a contestant: a program that makes its jobs, and workers that do them, all in its own environment."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from bench.arena import Arena
from bench.children import Child, child
from bench.peers.environment import python_of
from bench.places import HERE

PROGRAMS = HERE / "peers" / "programs"


class Peer:
    """A peer that runs. The operator answers questions (see peers/programs); the workers are idle until there is work."""

    def __init__(self, name: str, operator: Child, workers: Sequence[Child], others: Mapping[str, int]) -> None:
        self.name = name
        self._operator = operator
        self._workers = workers
        self._others = dict(others)

    @property
    def pids(self) -> Mapping[str, int]:
        """Workers, and what the peer needs besides, as its broker; not the operator, which only makes jobs."""
        return {f"worker-{number}": worker.pid for number, worker in enumerate(self._workers, 1)} | self._others

    async def stage(self, count: int) -> None:
        """See Contestant."""
        await self._operator.ask(op="stage", count=count)

    async def release(self) -> None:
        """See Contestant."""
        await self._operator.ask(op="release")

    async def unfinished(self) -> int:
        """See Contestant."""
        return int((await self._operator.ask(op="unfinished"))["count"])

    async def ask(self, op: str, **question: Any) -> dict[str, Any]:
        """Any other question to the operator."""
        return await self._operator.ask(op=op, **question)


@contextlib.asynccontextmanager
async def running_peer(
    arena: Arena,
    peer: str,
    name: str,
    address: str,
    worker_settings: Mapping[str, Any],
    *,
    workers: int = 1,
    others: Mapping[str, int] | None = None,
) -> AsyncIterator[Peer]:
    """Operator and workers inside the block; `address` is that of the database or broker."""
    python = str(await python_of(peer))
    program = str(PROGRAMS / f"with_{peer}.py")
    async with contextlib.AsyncExitStack() as stack:
        operator = await stack.enter_async_context(
            child(f"{name}, operator", [python, program, "operate", address], arena.log(f"{peer}-operator"))
        )
        await operator.answer()
        started = []
        for number in range(1, workers + 1):
            command = [python, program, "work", address, json.dumps(worker_settings)]
            worker = child(f"{name}, worker {number}", command, arena.log(f"{peer}-worker-{number}"))
            started.append(await stack.enter_async_context(worker))
        for worker_child in started:
            await worker_child.answer()
        yield Peer(name, operator, started, others or {})
