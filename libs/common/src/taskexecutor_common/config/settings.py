"""Settings of the services: one class each, read from TE_* variables, all faults reported at once.

`taskexecutor-<service> --check-config` loads them and says what is wrong without starting anything.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AliasChoices, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from taskexecutor_common.config.field_types import (
    AdvertisedAddress,
    DatabaseUrl,
    EgressAllow,
    EncryptionKeys,
    ListenAddress,
    MetricsAddress,
)
from taskexecutor_common.config.tls_files import TlsFiles, check_authority, check_certificate, check_key


class DatabaseSettings(BaseSettings):
    """What every process needs to reach the database."""

    model_config = SettingsConfigDict(env_prefix="TE_", extra="ignore")

    database_url: DatabaseUrl
    """libpq connection string or URL of PostgreSQL 15+ or CockroachDB. Required."""

    db_isolation: Literal["read committed", "serializable"] = "read committed"
    """Isolation of all transactions. Correctness does not depend on it; only a real cluster can say which is faster."""


class ServiceSettings(DatabaseSettings):
    """What all three services share."""

    region: Annotated[str, Field(min_length=1, max_length=64)] = "default"
    """Written to every row; one region for now."""

    lanes: Annotated[int, Field(ge=1, le=256)] = 1
    """Insert points of the hot tables: 1 on PostgreSQL, 64 and more on a CockroachDB cluster. The same for all services."""

    log_format: Literal["auto", "json", "text"] = "auto"
    """`auto`: text on a terminal, JSON otherwise."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least level that is logged."""

    metrics_addr: MetricsAddress = "127.0.0.1:0"
    """host:port that serves /metrics; port 0 takes a free one, no host is 127.0.0.1, empty serves none."""

    advertise_addr: AdvertisedAddress | None = None
    """host:port under which other services reach this one's internal port; default: this host's name and that port."""

    shutdown_timeout_sec: Annotated[
        float,
        Field(ge=0, le=600, validation_alias=AliasChoices("TE_SHUTDOWN_TIMEOUT_SEC", "TE_WORKER_SHUTDOWN_TIMEOUT_SEC")),
    ] = 30.0
    """How long work in flight may take to end after SIGTERM, in seconds."""

    tls_cert_file: str = ""
    """PEM file of this service's certificate for `taskexecutor.internal`, with its chain; the three set: TLS, in which both
    sides show one."""

    tls_key_file: str = ""
    """PEM file of the certificate's key."""

    tls_ca_file: str = ""
    """PEM file of the authority whose certificates are believed: whoever has one of them is inside."""

    @property
    def tls(self) -> TlsFiles | None:
        """What TLS among the services is made of; None: they speak in clear text."""
        if not self.tls_cert_file:
            return None
        return TlsFiles(self.tls_cert_file, self.tls_key_file, self.tls_ca_file)

    # Fields are checked in the order above; one that was bad is missing from `info.data`.

    @field_validator("tls_cert_file")
    @classmethod
    def _check_tls_certificate(cls, path: str) -> str:
        if path:
            check_certificate(path)
        return path

    @field_validator("tls_key_file")
    @classmethod
    def _check_tls_key(cls, path: str, info: ValidationInfo) -> str:
        if (certificate := info.data.get("tls_cert_file")) is not None:
            check_key(path, certificate)
        return path

    @field_validator("tls_ca_file")
    @classmethod
    def _check_tls_authority(cls, path: str, info: ValidationInfo) -> str:
        if (certificate := info.data.get("tls_cert_file")) is not None:
            check_authority(path, certificate, info.data.get("tls_key_file"))
        return path


class ApiSettings(ServiceSettings):
    """Settings of taskexecutor-api."""

    listen_addr: ListenAddress = "0.0.0.0:50051"
    """host:port or unix:PATH of the public gRPC port, where Envoy connects."""

    db_pool_size: Annotated[int, Field(ge=1, le=500)] = 20
    """Database connections of this process."""

    secret_encryption_key: EncryptionKeys
    """Key ring for secrets at rest: `id:base64`, comma-separated, the first encrypts. Required."""

    api_key_cache_ttl_sec: Annotated[float, Field(ge=0, le=300)] = 5.0
    """How long a looked-up API key is trusted; a revoked one is refused after this at the latest."""

    rate_limit_per_sec: Annotated[float, Field(gt=0)] = 10_000.0
    """Requests per second and key that this process admits."""

    rate_limit_burst: Annotated[int, Field(ge=1)] = 20_000
    """Requests that a key may send at once after a rest."""


class SchedulerSettings(ServiceSettings):
    """Settings of taskexecutor-scheduler."""

    internal_listen_addr: ListenAddress = "0.0.0.0:50052"
    """host:port of the internal gRPC port (hints, health)."""

    db_pool_size: Annotated[int, Field(ge=1, le=500)] = 10
    """Database connections of this process."""

    cron_tick_interval_sec: Annotated[float, Field(gt=0, le=60)] = 1.0
    """Longest sleep of the cron ticker; it wakes earlier for a tick that is due earlier."""

    cron_batch_size: Annotated[int, Field(ge=1, le=1000)] = 100
    """Schedules advanced by one statement."""

    cron_misfire_grace_sec: Annotated[float, Field(ge=1, le=3600)] = 10.0
    """How late a tick may be without counting as missed (see catch_up)."""

    promote_interval_ms: Annotated[int, Field(gt=0, le=60_000)] = 500
    """Longest sleep of the promoter; it wakes earlier for a timer that is due earlier."""

    promote_ahead_ms: Annotated[int, Field(ge=0, le=1000)] = 100
    """How long before its time a timer may be handed to a dispatcher, which keeps it until then."""

    retention_days: Annotated[float, Field(gt=0, le=36_500)] = 30.0
    """How long finished executions and retired jobs are kept, where their namespace has no retention of its own."""

    prune_interval_sec: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    """Pause between two walks of the pruner."""

    reclaim_interval_sec: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Longest sleep of the reclaimer; it wakes earlier when an instance may be dead or a lease be over."""


class DispatcherSettings(ServiceSettings):
    """Settings of taskexecutor-dispatcher."""

    internal_listen_addr: ListenAddress = "0.0.0.0:50053"
    """host:port of the internal gRPC port (hints, health)."""

    db_pool_size: Annotated[int, Field(ge=1, le=500)] = 10
    """Database connections of this process."""

    worker_max_concurrent: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Deliveries at once in this process."""

    worker_poll_interval_ms: Annotated[int, Field(gt=0, le=60_000)] = 200
    """Longest sleep between two looks for work; hints wake it earlier."""

    secret_encryption_key: EncryptionKeys
    """Key ring for secrets at rest; the same as the api's. Required."""

    config_cache_ttl_sec: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """How long an unused endpoint or config revision is kept in memory. Revisions never go stale."""

    secret_cache_ttl_sec: Annotated[float, Field(ge=0, le=3600)] = 300.0
    """How long a decrypted secret is used before it is read again; a rotation is announced besides."""

    egress_allow: EgressAllow = ""
    """Address ranges beyond the public internet that deliveries may reach: `loopback`, `private`, CIDRs; comma-separated."""

    http_client: Literal["httptools", "aiohttp"] = "httptools"
    """What sends HTTP deliveries: our own client on the `httptools` parser, or aiohttp, at several times the CPU."""

    lease_grace_ms: Annotated[int, Field(ge=1000, le=600_000)] = 10_000
    """What a lease allows beyond the endpoint's timeout."""


HEARTBEAT_INTERVAL_SEC = 5.0
"""Every instance writes its row this often."""

DEAD_AFTER_SEC = 15.0
"""Silence that counts as death; an instance that cannot beat stops sending before (FENCE_AFTER_SEC)."""

FENCE_AFTER_SEC = 12.0
"""Without a heartbeat for this long a dispatcher sends nothing more."""

SettingsT = TypeVar("SettingsT", bound=BaseSettings)


def load(settings: type[SettingsT]) -> SettingsT:
    """Reads settings from the environment, or ends the process with status 2 and a list of all that is wrong."""
    try:
        return settings()
    except ValidationError as error:
        print("bad configuration:", file=sys.stderr)
        for name, fault in faults_of(error).items():
            print(f"  {name}: {fault}", file=sys.stderr)
        sys.exit(2)


def faults_in(settings: type[BaseSettings], environment: Mapping[str, str]) -> dict[str, str]:
    """What `load` would say in a process with this environment: variable -> fault, none when all is good."""

    class Given(settings):  # type: ignore[misc, valid-type]  # a class that is known when this runs
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: Any, init_settings: Any, env_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
        ) -> tuple[PydanticBaseSettingsSource]:
            assert isinstance(env_settings, EnvSettingsSource)
            env_settings.env_vars = {name.lower(): text for name, text in environment.items()}
            return (env_settings,)

    try:
        Given()
    except ValidationError as error:
        return faults_of(error)
    return {}


def faults_of(error: ValidationError) -> dict[str, str]:
    """Variable -> what is wrong with it, without its value."""
    return {
        _variable(fault["loc"]): fault["msg"].removeprefix("Value error, ")
        for fault in error.errors(include_input=False)
    }


def _variable(field: tuple[int | str, ...]) -> str:
    name = "_".join(str(part) for part in field)
    return name if name.startswith("TE_") else f"TE_{name.upper()}"
