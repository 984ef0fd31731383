"""The entry of a service process: arguments, settings, logs, metrics, and the event loop."""

from __future__ import annotations

import argparse
import contextlib
import gc
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import uvloop

from taskexecutor_common.config.settings import ServiceSettings, load
from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.observability.logging import configure, get_logger
from taskexecutor_common.observability.server import serve_metrics

SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


def run_process(name: str, settings_type: type[SettingsT], serve: Callable[[SettingsT], Awaitable[None]]) -> int:
    """Runs `serve(settings)` until it returns. Answers the exit status: 0, 1 when it failed, 2 for bad settings."""
    parser = argparse.ArgumentParser(prog=f"taskexecutor-{name}")
    parser.add_argument("--check-config", action="store_true", help="read the settings, say what is wrong, and end")
    arguments = parser.parse_args()
    settings = load(settings_type)
    if arguments.check_config:
        print("the configuration is good")
        return 0
    configure(name, log_format=settings.log_format, level=settings.log_level)
    try:
        port, stop_metrics = serve_metrics(settings.metrics_addr)
    except OSError as error:
        print(f"taskexecutor-{name}: TE_METRICS_ADDR {settings.metrics_addr}: {error}", file=sys.stderr)
        return 1
    _collect_less_garbage()
    get_logger("runtime").info("starting", metrics_port=port, open_files=open_as_many_files_as_allowed())
    try:
        uvloop.run(serve(settings))  # type: ignore[arg-type]  # a coroutine function's result is a coroutine
    except (TaskExecutorError, RuntimeError) as error:
        get_logger("runtime").error("cannot run", error=str(error))
        return 1
    finally:
        stop_metrics()
    return 0


def open_as_many_files_as_allowed() -> int:
    """Raises the soft limit of open files to the hard one, and answers it. The soft one is 1024 in most shells for the
    sake of programs that use select(), which none of ours does; each call and each delivery under way needs a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # where unlimited means less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft


def _collect_less_garbage() -> None:
    """Reference counts free nearly all of what a service allocates. The collector looks for cycles after every 700 new
    objects, which is a tenth of a dispatcher's time under load; what was imported never becomes garbage at all."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
