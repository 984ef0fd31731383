"""What can be set about `make run`, by environment variables."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Set
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from taskexecutor_common.api_keys import parse_key
from taskexecutor_common.config.field_types import DatabaseUrl, EgressAllow, EncryptionKeys
from taskexecutor_common.config.settings import (
    ApiSettings,
    DispatcherSettings,
    SchedulerSettings,
    faults_in,
    faults_of,
)

PREFIX = "TE_"
MAY_BE_EMPTY = {"egress_allow"}
TLS_PREFIX = f"{PREFIX}TLS_"
CHOSEN_ANEW = {"TE_LISTEN_ADDR", "TE_INTERNAL_LISTEN_ADDR", "TE_METRICS_ADDR"}
"""Addresses that each service is given at each start, whatever the user's say."""


def check_key(text: str) -> str:
    """Answers `text` when it has the form of an API key; ValueError else."""
    if parse_key(text) is None:
        raise ValueError("an API key has the form te_<hex>_<hex>, 4 to 64 and 8 to 128 lowercase hex digits")
    return text


ApiKey = Annotated[str, AfterValidator(check_key)]


class SettingsError(Exception):
    """One line per setting that cannot be used."""

    @classmethod
    def of(cls, faults: Mapping[str, str]) -> Self:
        """From variable -> what is wrong with it."""
        return cls("\n".join(f"{name}: {fault}" for name, fault in faults.items()))


class LocalSettings(BaseModel):
    """Settings of the launcher, TE_ and the field's name; any other TE_ variable goes to the services as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    http_port: int = Field(8080, ge=0, le=65535, description="Port of the gateway on 127.0.0.1; 0 takes a free one.")
    data_dir: pathlib.Path = Field(pathlib.Path(".data"), description="Folder of all data, logs and secrets.")
    database_url: DatabaseUrl | None = Field(None, description="A database to use instead of the embedded PostgreSQL.")
    bootstrap_api_key: ApiKey | None = Field(None, description="The first API key; made once and kept when unset.")
    secret_encryption_key: EncryptionKeys | None = Field(
        None, description="Encrypts secrets; made once and kept when unset."
    )
    egress_allow: EgressAllow = Field("loopback", description="Where deliveries may go besides public addresses.")
    # Each may take TE_DB_POOL_SIZE connections and four more of the 300 that the embedded server has: enough for all of them.
    dispatcher_processes: int = Field(1, ge=1, le=16, description="Dispatchers side by side; each uses one core.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **overrides: object) -> Self:
        """Reads the variables; an empty one counts as unset, save where nothing is a choice.

        Raises SettingsError with every fault, those that the services would find included, and no secret.
        """
        names = {name: f"{PREFIX}{name.upper()}" for name in cls.model_fields}
        said = {name: environment[variable] for name, variable in names.items() if variable in environment}
        values = {name: text for name, text in said.items() if text or name in MAY_BE_EMPTY}
        faults = faults_of_tls(environment) | faults_of_services(environment, but=set(names.values()))
        try:
            settings = cls.model_validate(values | overrides)
        except ValidationError as error:
            raise SettingsError.of(faults_of(error) | faults) from None
        if faults:
            raise SettingsError.of(faults)
        return settings


def faults_of_tls(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that ask for TLS -> why there is none."""
    if tls := sorted(name for name, value in environment.items() if name.startswith(TLS_PREFIX) and value):
        return {", ".join(tls): "services on one machine need no TLS and get none here; leave it unset"}
    return {}


def faults_of_services(environment: Mapping[str, str], *, but: Set[str]) -> dict[str, str]:
    """Variable -> what a service would find wrong with it. `but` are those that it does not get from its user."""
    passed_on = {name: text for name, text in environment.items() if not name.startswith(TLS_PREFIX)}
    faults: dict[str, str] = {}
    for service in (ApiSettings, SchedulerSettings, DispatcherSettings):
        faults |= faults_in(service, passed_on)
    return {name: fault for name, fault in faults.items() if name not in but | CHOSEN_ANEW}
