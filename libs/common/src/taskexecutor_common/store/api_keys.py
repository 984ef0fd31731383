"""API keys: stored as hashes, looked up by id."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from taskexecutor_common.model.setup import ApiKey, Scope
from taskexecutor_common.store.database import Database


@dataclass(frozen=True, slots=True)
class _KeyId:
    key_id: str


class ApiKeyStore:
    """Reads and writes of API keys."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def find(self, key_id: str) -> ApiKey | None:
        """Reads one key; whether it is usable is judged by the database's clock."""
        return await self._db.fetch_one("find_api_key", ApiKey, key_id=key_id)

    async def ensure(
        self, key_id: str, secret_hash: bytes, *, namespace: str, name: str, scopes: Collection[Scope]
    ) -> None:
        """Makes a key, or sets an existing one to these rights without expiry."""
        await self._db.fetch_one(
            "ensure_api_key",
            _KeyId,
            key_id=key_id,
            namespace=namespace,
            name=name,
            secret_hash=secret_hash,
            scopes=[scope.value for scope in scopes],
        )
