"""API keys: stored as hashes, looked up by id."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from taskexecutor_common.model.setup import ApiKey, ApiKeyInfo, Scope
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

    async def create(
        self,
        key_id: str,
        secret_hash: bytes,
        *,
        namespace: str,
        name: str,
        scopes: Collection[Scope],
        expires_at: datetime | None,
    ) -> ApiKeyInfo | None:
        """Makes a key; None: the id is taken, which random ids are not."""
        return await self._db.fetch_one(
            "create_api_key",
            ApiKeyInfo,
            repeatable=False,
            key_id=key_id,
            namespace=namespace,
            name=name,
            secret_hash=secret_hash,
            scopes=[scope.value for scope in scopes],
            expires_at=expires_at,
        )

    async def list_page(self, namespace: str, before: tuple[datetime, str], page: int) -> list[ApiKeyInfo]:
        """Reads a page, newest first, of what is older than `before`."""
        return await self._db.fetch_all(
            "list_api_keys",
            ApiKeyInfo,
            namespace=namespace,
            before_created_at=before[0],
            before_key_id=before[1],
            page=page,
        )

    async def revoke(self, namespace: str, key_id: str) -> bool:
        """Revokes a key; False: there is none of this id."""
        return await self._db.fetch_one("revoke_api_key", _KeyId, namespace=namespace, key_id=key_id) is not None
