"""Which queues may have work, which may send now, and how a claim is shared out between them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from taskexecutor_common.model.execution import QueueState

_MAX_CHUNK = 100  # queues named in one claim
_MAX_BATCH = 200  # executions in one claim
_PER_FREE_SLOT = 8
_LEAST_WAIT_SEC = 0.005  # an open queue that gave nothing: another dispatcher is claiming from it


class QueueSet:
    """The queues that this dispatcher believes to have work, in the order of their turns.

    A claim visits a chunk of queues from the front, each with a quota of its own, so that a deep queue cannot hold up a
    shallow one. A queue that filled its quota goes to the back; one that did not is empty and forgotten until a hint or
    the periodic look brings it back. A hint that arrives while its queue is being claimed counts: the claim may have
    looked too early.

    A queue whose endpoint has limits may give less although it is not empty. Where it stands is looked up (`note`): it
    waits here until it opens, or outside until something happens to it. The limits themselves are held by the claim.

    A claim walks the lanes of a queue in order. While there is more than it can take, the next one begins at a lane chosen
    by `pick_lane(lanes)`: otherwise a backlog in the low lanes would hold up the high ones for as long as it stands.
    """

    def __init__(
        self, monotonic: Callable[[], float], *, lanes: int = 1, pick_lane: Callable[[int], int] = random.randrange
    ) -> None:
        self._monotonic = monotonic
        self._lanes = lanes
        self._pick_lane = pick_lane
        self._first_lanes: dict[UUID, int] = {}
        self._waiting: dict[UUID, None] = {}
        self._limited: set[UUID] = set()
        self._opening: dict[UUID, float] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, queues: Iterable[UUID]) -> None:
        """These have work; those known already keep their turn."""
        for queue in queues:
            self._waiting.setdefault(queue)

    def add_limited(self, queues: Iterable[UUID]) -> None:
        """Endpoints with limits that have room again, and perhaps work."""
        for queue in queues:
            self._limited.add(queue)
            self._waiting.setdefault(queue)

    def close(self, queue: UUID, seconds: float) -> None:
        """This one opens so many seconds from now. It may have nothing then; but what comes meanwhile finds it closed."""
        self._opening[queue] = self._monotonic() + seconds

    def note(self, states: Iterable[QueueState], *, gave_nothing: bool = False) -> None:
        """How queues with work were found; `gave_nothing` when a claim has just got less from them than it asked for."""
        now = self._monotonic()
        for state in states:
            if state.is_limited:
                self._limited.add(state.queue)
            else:
                self._limited.discard(state.queue)
            if state.opens_in_ms is None:
                continue
            wait_sec = max(state.opens_in_ms / 1000, _LEAST_WAIT_SEC if gave_nothing else 0)
            if wait_sec > 0:
                self._opening[state.queue] = now + wait_sec
            else:
                self._waiting.setdefault(state.queue)

    def open_due(self) -> None:
        """Lets those in whose time has come."""
        if not self._opening:
            return
        now = self._monotonic()
        for queue in [queue for queue, at in self._opening.items() if at <= now]:
            del self._opening[queue]
            self._waiting.setdefault(queue)

    def next_opening_sec(self) -> float:
        """In how many seconds `open_due` has something to do; infinite when nothing waits for its time."""
        return max(0.0, min(self._opening.values(), default=math.inf) - self._monotonic())

    def share_out(self, free: int, held: Mapping[UUID, int]) -> dict[UUID, int]:
        """Quotas for the next chunk, for `free` slots at most; `held` says how many slots each queue has already.

        A queue whose deliveries take long must not end up with all the slots. So what it may hold is bounded by what is
        left for others: `_PER_FREE_SLOT` times the slots that stay free (the dynamic threshold of Choudhury and Hahne,
        IEEE/ACM Transactions on Networking 6(2), 1998). One queue gets eight ninths, two get eight seventeenths each.
        """
        most = min(free, _MAX_CHUNK)
        chunk: dict[UUID, int] = {}
        for queue in self._waiting:
            if len(chunk) == most:
                break
            allowance = -((held.get(queue, 0) - _PER_FREE_SLOT * free) // (_PER_FREE_SLOT + 1))  # rounded up
            if allowance > 0:
                chunk[queue] = allowance
        if not chunk:
            return {}
        share, extra = divmod(min(free, _MAX_BATCH), len(chunk))
        return {queue: min(share + (index < extra), chunk[queue]) for index, queue in enumerate(chunk)}

    def first_lane(self, queue: UUID) -> int:
        """The lane at which the next claim of a queue begins."""
        return self._first_lanes.get(queue, 0)

    def take(self, quotas: Iterable[UUID]) -> None:
        """These are claimed from now: out of the set until `give_back`."""
        for queue in quotas:
            del self._waiting[queue]

    def give_back(self, quotas: Mapping[UUID, int], claimed: Mapping[UUID, int]) -> list[UUID]:
        """Puts the queues that filled their quota at the back. Answers those with limits that did not: look at them."""
        short: list[UUID] = []
        for queue, quota in quotas.items():
            count = claimed.get(queue, 0)
            began_at = self._first_lanes.pop(queue, 0)
            if count >= quota:
                self._waiting.setdefault(queue)
                self._go_on(queue)
            elif queue in self._limited:
                short.append(queue)
                if count:  # the limit stopped it, as far as one can tell
                    self._go_on(queue)
            elif began_at:
                self._waiting.setdefault(queue)  # the lanes below have not been looked at
        return short

    def _go_on(self, queue: UUID) -> None:
        if self._lanes > 1:
            self._first_lanes[queue] = self._pick_lane(self._lanes)
