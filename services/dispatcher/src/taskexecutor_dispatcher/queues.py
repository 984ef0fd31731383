"""Which queues may have work, and how a claim is shared out between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

_MAX_CHUNK = 100  # queues named in one claim


class QueueSet:
    """The queues that this dispatcher believes to have work, in the order of their turns.

    A claim visits a chunk of queues from the front, each with a quota of its own, so that a deep queue cannot hold up a
    shallow one. A queue that filled its quota goes to the back; one that did not is empty and forgotten until a hint or
    the periodic look brings it back. A hint that arrives while its queue is being claimed counts: the claim may have
    looked too early.
    """

    def __init__(self) -> None:
        self._waiting: dict[UUID, None] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, queues: Iterable[UUID]) -> None:
        """These have work; those known already keep their turn."""
        for queue in queues:
            self._waiting.setdefault(queue)

    def take(self, free: int) -> dict[UUID, int]:
        """The next chunk with its quotas, which add up to `free` at most; its queues are out of the set until `give_back`."""
        chunk = [queue for queue, _ in zip(self._waiting, range(min(free, _MAX_CHUNK)), strict=False)]
        for queue in chunk:
            del self._waiting[queue]
        if not chunk:
            return {}
        share, extra = divmod(free, len(chunk))
        return {queue: share + (index < extra) for index, queue in enumerate(chunk)}

    def give_back(self, quotas: Mapping[UUID, int], claimed: Mapping[UUID, int]) -> None:
        """Puts the queues that filled their quota at the back."""
        self.add(queue for queue, quota in quotas.items() if claimed.get(queue, 0) >= quota)
