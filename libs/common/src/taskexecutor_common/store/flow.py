"""What endpoints take at a time, as callers set and see it."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from taskexecutor_common.model.endpoint import EndpointFlow, FlowControl
from taskexecutor_common.store.database import Database, Transaction


class FlowStore:
    """Pauses, and the state of flow control. Limits are written with the endpoint (store/endpoints.py)."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, endpoint_ids: Collection[UUID]) -> dict[UUID, EndpointFlow]:
        """The flow of each of these endpoints."""
        rows = await self._db.fetch_all("get_endpoint_flows", EndpointFlow, endpoint_ids=list(endpoint_ids))
        return {row.endpoint_id: row for row in rows}

    async def pause(self, endpoint_id: UUID) -> bool:
        """Nothing is claimed for it from now on; what was paused before keeps its time. False: it is deleted."""
        return await self._db.execute("pause_endpoint", endpoint_id=endpoint_id) == 1

    async def resume(self, endpoint_id: UUID) -> None:
        """Ends a pause, closes the circuit, opens the tap."""
        await self._db.execute("resume_endpoint", endpoint_id=endpoint_id)


async def write_limits(tx: Transaction, endpoint_id: UUID, control: FlowControl) -> None:
    """Sets all limits of an endpoint."""
    await tx.execute("create_endpoint_flow", endpoint_id=endpoint_id)
    rate, breaker = control.rate_limit, control.circuit_breaker
    await tx.execute(
        "set_endpoint_limits",
        endpoint_id=endpoint_id,
        max_in_flight=control.max_in_flight,
        rate_per_sec=rate.per_sec if rate else None,
        burst=rate.burst if rate else None,
        failure_rate=breaker.failure_rate if breaker else None,
        minimum_attempts=breaker.minimum_attempts if breaker else None,
        window_ms=breaker.window_ms if breaker else None,
        open_ms=breaker.open_ms if breaker else None,
    )
