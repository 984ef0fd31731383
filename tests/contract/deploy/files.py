"""What the tests of this folder read: the files that ship around the code."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from taskexecutor_common.config.settings import (
    ApiSettings,
    DatabaseSettings,
    DispatcherSettings,
    SchedulerSettings,
)
from taskexecutor_common.store.admin import AdminSettings

ROOT = Path(__file__).resolve().parents[3]

SETTINGS: dict[str, type[DatabaseSettings]] = {
    "api": ApiSettings,
    "scheduler": SchedulerSettings,
    "dispatcher": DispatcherSettings,
    "migrate": AdminSettings,
}
"""Our own containers, and what each of them reads from the environment."""


def text(path: str) -> str:
    """A file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def compose() -> dict[str, Any]:
    """docker-compose.yml with its ${NAME:-default} filled as in an empty environment."""
    filled = re.sub(r"(?<!\$)\$\{\w+:-([^}]*)\}", r"\1", text("docker-compose.yml"))
    assert "${" not in filled, "a variable without a default"
    loaded: dict[str, Any] = yaml.safe_load(filled)
    return loaded


def containers() -> dict[str, dict[str, Any]]:
    """The services of docker-compose.yml."""
    services: dict[str, dict[str, Any]] = compose()["services"]
    return services


def pyproject(path: str) -> dict[str, Any]:
    """A pyproject.toml."""
    return tomllib.loads(text(path))


def commands() -> set[str]:
    """All console scripts of the workspace."""
    folders = (ROOT / member for member in pyproject("pyproject.toml")["tool"]["uv"]["workspace"]["members"])
    projects = [path for folder in folders for path in ROOT.glob(f"{folder.relative_to(ROOT)}/pyproject.toml")]
    return {name for path in projects for name in tomllib.loads(path.read_text())["project"].get("scripts", {})}


def variables(settings: type[DatabaseSettings], field: str) -> list[str]:
    """The names under which a field is read from the environment, the documented one first."""
    alias = settings.model_fields[field].validation_alias
    return [str(choice) for choice in alias.choices] if hasattr(alias, "choices") else [f"TE_{field.upper()}"]


def default_port(settings: type[DatabaseSettings]) -> int:
    """The gRPC port that a service listens on unless told otherwise."""
    fields = settings.model_fields
    listen = fields["listen_addr"] if "listen_addr" in fields else fields["internal_listen_addr"]
    return int(str(listen.default).rpartition(":")[2])
