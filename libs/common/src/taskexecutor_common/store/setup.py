"""Payload specs, configs and secrets: what endpoints refer to."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.model.setup import (
    Config,
    ConfigRevision,
    EncryptedSecret,
    PayloadSpec,
    Reference,
    ReferenceKind,
    Referrer,
    Secret,
)
from taskexecutor_common.store.database import Database, Transaction


def to_json(value: Any) -> str:
    """JSON text as the statements take it."""
    return orjson.dumps(value).decode()


BrokenBy = Callable[[str], bool]
"""Says of a dotted config path whether new values lack it."""


@dataclass(frozen=True, slots=True)
class StoredValues:
    """A config revision as the dispatcher reads it."""

    revision_id: uuid.UUID
    values_json: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A secret with its place, as re-encryption reads it."""

    namespace: str
    name: str
    key_id: str
    encrypted_value: bytes


class SetupStore:
    """Reads and writes of the three named resources. Methods answer None where the name is taken or absent.

    A creation whose answer was lost is run again and then finds its own row: it is told from somebody else's by the id, or
    the ciphertext, that only this call can have written.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def create_payload_spec(self, namespace: str, name: str, schema: dict[str, Any]) -> PayloadSpec | None:
        """Writes a new payload spec."""
        revision_id = uuid.uuid4()
        created = await self._db.fetch_one(
            "create_payload_spec",
            PayloadSpec,
            namespace=namespace,
            name=name,
            revision_id=revision_id,
            schema_json=to_json(schema),
        )
        found = created or await self.get_payload_spec(namespace, name)
        return found if found and found.revision_id == revision_id else None

    async def get_payload_spec(self, namespace: str, name: str) -> PayloadSpec | None:
        """Reads one payload spec."""
        return await self._db.fetch_one("get_payload_spec", PayloadSpec, namespace=namespace, name=name)

    async def list_payload_specs(self, namespace: str, before: tuple[datetime, str], page: int) -> list[PayloadSpec]:
        """Reads a page, newest first, of what is older than `before`."""
        return await self._db.fetch_all(
            "list_payload_specs",
            PayloadSpec,
            namespace=namespace,
            before_created_at=before[0],
            before_name=before[1],
            page=page,
        )

    async def update_payload_spec(self, namespace: str, name: str, schema: dict[str, Any]) -> PayloadSpec | None:
        """Replaces the schema."""
        return await self._db.fetch_one(
            "update_payload_spec",
            PayloadSpec,
            namespace=namespace,
            name=name,
            revision_id=uuid.uuid4(),
            schema_json=to_json(schema),
        )

    async def create_config(self, namespace: str, name: str, values: dict[str, Any]) -> Config | None:
        """Writes a new config with its first revision."""
        revision_id = uuid.uuid4()
        created = await self._db.fetch_one(
            "create_config",
            Config,
            namespace=namespace,
            name=name,
            config_id=uuid.uuid4(),
            revision_id=revision_id,
            values_json=to_json(values),
        )
        found = created or await self.get_config(namespace, name)
        return found if found and found.revision_id == revision_id else None

    async def get_config(self, namespace: str, name: str) -> Config | None:
        """Reads one config."""
        return await self._db.fetch_one("get_config", Config, namespace=namespace, name=name)

    async def list_configs(self, namespace: str, before: tuple[datetime, str], page: int) -> list[Config]:
        """Reads a page, newest first, of what is older than `before`."""
        return await self._db.fetch_all(
            "list_configs",
            Config,
            namespace=namespace,
            before_created_at=before[0],
            before_name=before[1],
            page=page,
        )

    async def update_config(
        self, namespace: str, name: str, values: dict[str, Any], broken_by: BrokenBy
    ) -> tuple[Config | None, list[Referrer]]:
        """Writes the next revision, unless endpoints refer to paths that `values` lacks: then those are answered.

        The config's row is locked first, so that no endpoint can begin to refer to it meanwhile.
        """

        async def work(tx: Transaction) -> tuple[Config | None, list[Referrer]]:
            if not await tx.execute("lock_config", namespace=namespace, name=name):
                return None, []
            referrers = await tx.fetch_all(
                "find_referrers", Referrer, namespace=namespace, kind=ReferenceKind.CONFIG, name=name
            )
            broken = [referrer for referrer in referrers if referrer.path and broken_by(referrer.path)]
            if broken:
                return None, broken
            config = await tx.fetch_one(
                "update_config",
                Config,
                namespace=namespace,
                name=name,
                revision_id=uuid.uuid4(),
                values_json=to_json(values),
            )
            return config, []

        return await self._db.run("update_config", work, repeatable=False)

    async def get_config_revision(self, revision_id: uuid.UUID) -> dict[str, Any] | None:
        """The values of one immutable revision."""
        row = await self._db.fetch_one("get_config_revision", StoredValues, revision_id=revision_id)
        return row.values_json if row else None

    async def list_config_revisions(self, config_id: uuid.UUID, before: int, page: int) -> list[ConfigRevision]:
        """Reads a page of revisions, newest first."""
        return await self._db.fetch_all(
            "list_config_revisions", ConfigRevision, config_id=config_id, before_revision=before, page=page
        )

    async def create_secret(self, namespace: str, name: str, key_id: str, encrypted: bytes) -> Secret | None:
        """Writes a new secret."""
        created = await self._db.fetch_one(
            "create_secret", Secret, namespace=namespace, name=name, key_id=key_id, encrypted_value=encrypted
        )
        if created:
            return created
        stored = await self.get_encrypted_secret(namespace, name)
        ours = stored is not None and stored.encrypted_value == encrypted
        return await self.get_secret(namespace, name) if ours else None

    async def get_secret(self, namespace: str, name: str) -> Secret | None:
        """Reads a secret's metadata."""
        return await self._db.fetch_one("get_secret", Secret, namespace=namespace, name=name)

    async def get_encrypted_secret(self, namespace: str, name: str) -> EncryptedSecret | None:
        """Reads a secret's ciphertext."""
        return await self._db.fetch_one("get_encrypted_secret", EncryptedSecret, namespace=namespace, name=name)

    async def list_secrets(self, namespace: str, before: tuple[datetime, str], page: int) -> list[Secret]:
        """Reads a page of metadata, newest first, of what is older than `before`."""
        return await self._db.fetch_all(
            "list_secrets",
            Secret,
            namespace=namespace,
            before_created_at=before[0],
            before_name=before[1],
            page=page,
        )

    async def update_secret(self, namespace: str, name: str, key_id: str, encrypted: bytes) -> Secret | None:
        """Replaces the value."""
        return await self._db.fetch_one(
            "update_secret", Secret, namespace=namespace, name=name, key_id=key_id, encrypted_value=encrypted
        )

    async def reencrypt_secrets(self, keys: KeyRing) -> int:
        """Encrypts all secrets under the ring's first key. Answers how many it changed. Raises DecryptionFailed.

        A secret that is rotated meanwhile is left as its rotation wrote it; running it again does no harm.
        """
        changed, after = 0, ("", "")
        while True:
            page = await self._db.fetch_all(
                "find_secrets_of_other_keys",
                StoredSecret,
                key_id=keys.primary_id,
                after_namespace=after[0],
                after_name=after[1],
            )
            for secret in page:
                changed += await self._reencrypt(keys, secret)
            if not page:
                return changed
            after = (page[-1].namespace, page[-1].name)

    async def _reencrypt(self, keys: KeyRing, secret: StoredSecret) -> int:
        plain = keys.decrypt(secret.key_id, secret.encrypted_value, namespace=secret.namespace, name=secret.name)
        key_id, encrypted = keys.encrypt(plain, namespace=secret.namespace, name=secret.name)
        return await self._db.execute(
            "reencrypt_secret",
            namespace=secret.namespace,
            name=secret.name,
            key_id=key_id,
            encrypted_value=encrypted,
            old_value=secret.encrypted_value,
        )

    async def delete(self, kind: ReferenceKind, namespace: str, name: str) -> tuple[bool, list[str]]:
        """Deletes what nobody refers to. Answers whether it was there, and the endpoints that refer to it.

        Locking the row before looking for referrers is what makes this right at READ COMMITTED: an endpoint that is being
        registered locks the same row before it writes its references.
        """
        noun = kind.value.lower()

        async def work(tx: Transaction) -> tuple[bool, list[str]]:
            if not await tx.execute(f"lock_{noun}", namespace=namespace, name=name):
                return False, []
            referrers = await tx.fetch_all("find_referrers", Referrer, namespace=namespace, kind=kind, name=name)
            if not referrers:
                await tx.execute(f"delete_{noun}", namespace=namespace, name=name)
            return True, sorted({referrer.endpoint for referrer in referrers})

        return await self._db.run(f"delete_{noun}", work, repeatable=False)


async def lock_references(tx: Transaction, namespace: str, references: list[Reference]) -> list[Reference]:
    """Locks the rows that `references` name, in one order for all callers, and answers those that are not there."""
    named = sorted({(reference.kind, reference.name) for reference in references})
    missing = {
        (kind, name)
        for kind, name in named
        if not await tx.execute(f"lock_{kind.value.lower()}", namespace=namespace, name=name)
    }
    return [reference for reference in references if (reference.kind, reference.name) in missing]
