"""The scheduler's internal rpc: hints that something new is due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import grpc

from taskexecutor.internal.v1 import scheduler_pb2, scheduler_pb2_grpc


class SchedulerServicer(scheduler_pb2_grpc.SchedulerServiceServicer):
    """Passes hints on to the loops."""

    def __init__(self, hint: Callable[[datetime | None], None]) -> None:
        self._hint = hint

    async def Wake(
        self,
        requests: AsyncIterator[scheduler_pb2.SchedulerServiceWakeRequest],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> scheduler_pb2.SchedulerServiceWakeResponse:
        """Something is due at `due_at`, each time."""
        async for request in requests:
            self._hint(request.due_at.ToDatetime(tzinfo=UTC) if request.HasField("due_at") else None)
        return scheduler_pb2.SchedulerServiceWakeResponse()
