"""A Database as part of a process: opened first, closed last."""

from __future__ import annotations

from taskexecutor_common.config.settings import ServiceSettings
from taskexecutor_common.store.database import Database


class OpenDatabase:
    """The pool of a service, as a Service."""

    def __init__(self, settings: ServiceSettings, component: str, pool_size: int) -> None:
        self.database = Database(
            settings.database_url,
            pool_size=pool_size,
            application_name=f"taskexecutor-{component}",
            isolation=settings.db_isolation,
        )

    async def start(self) -> None:
        """Opens the pool; raises Unavailable when the database does not answer."""
        await self.database.open()

    async def stop(self) -> None:
        """Closes the pool."""
        await self.database.close()
