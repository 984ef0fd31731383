"""Which regions there are, and which of them live."""

from __future__ import annotations

from dataclasses import dataclass

from taskexecutor_common.store.database import Database


@dataclass(frozen=True, slots=True)
class RegionState:
    """A region as the table of regions has it."""

    region: str
    alive: bool


class RegionStore:
    """Reads of the table of regions."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_all(self) -> list[RegionState]:
        """All regions."""
        return await self._db.fetch_all("list_region_status", RegionState)
