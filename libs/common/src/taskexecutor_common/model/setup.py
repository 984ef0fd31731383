"""Payload specs, configs, secrets and API keys, as the store gives them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class PayloadSpec:
    """A named JSON Schema. `revision_id` changes with every update."""

    name: str
    revision_id: UUID
    schema_json: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Config:
    """A named set of values in its current revision."""

    name: str
    config_id: UUID
    revision: int
    revision_id: UUID
    values_json: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ConfigRevision:
    """One immutable state of a config."""

    revision: int
    values_json: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Secret:
    """What may be known of a secret: everything but its value."""

    name: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class EncryptedSecret:
    """A secret as it is stored."""

    name: str
    key_id: str
    encrypted_value: bytes


class ReferenceKind(StrEnum):
    """What an endpoint may refer to."""

    PAYLOAD_SPEC = "PAYLOAD_SPEC"
    CONFIG = "CONFIG"
    SECRET = "SECRET"


@dataclass(frozen=True, slots=True)
class Reference:
    """One thing that an endpoint refers to; `path` is the dotted config path, empty for the thing itself."""

    kind: ReferenceKind
    name: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Referrer:
    """An endpoint that refers to something, and by which config path."""

    endpoint: str
    path: str


class Scope(StrEnum):
    """What an API key may do; ADMIN includes the others, WRITE does not include READ."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class ApiKeyInfo:
    """What may be known of an API key."""

    key_id: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as the api checks it; the secret is there only as its hash."""

    key_id: str
    namespace: str
    secret_hash: bytes
    scopes: list[str]
    usable: bool
