"""`make run`: starts the system, shows how it is, stops it on Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from taskexecutor_local import example
from taskexecutor_local.data_folder import DataFolder, FolderInUseError
from taskexecutor_local.postgres import PostgresError
from taskexecutor_local.process import StartError
from taskexecutor_local.screen import Screen, open_screen
from taskexecutor_local.settings import LocalSettings, SettingsError
from taskexecutor_local.stack import Stack

TAIL_INTERVAL_SEC = 0.5
SAME_SIGNAL_SEC = 1.0  # make passes on what its group got as well, so that one wish may arrive twice


def main() -> None:
    """Entry point: runs until SIGINT, SIGTERM or SIGHUP; exits 1 when it cannot start, with the reason."""
    try:
        settings = LocalSettings.from_environment(os.environ)
        with DataFolder(settings.data_dir) as folder, open_screen() as screen:
            asyncio.run(run(settings, folder, screen))
    except (SettingsError, FolderInUseError, StartError, PostgresError) as error:
        sys.exit(f"\n{error}")
    except OSError as error:  # a data folder that belongs to somebody else, most of all
        sys.exit(f"\nCannot go on: {error}")


async def run(settings: LocalSettings, folder: DataFolder, screen: Screen) -> None:
    """Starts all, waits for the signal to stop, stops all. Raises StartError or PostgresError."""
    stack = Stack(settings, folder, os.environ, on_change=screen.changed)
    stop_wanted = listen_to_signals(stack, screen)
    start = asyncio.create_task(start_and_watch(stack, settings, screen))
    stopper = asyncio.create_task(stop_wanted.wait())
    try:
        await asyncio.wait([start, stopper], return_when=asyncio.FIRST_COMPLETED)
        start.cancel()
        await asyncio.wait([start])
    finally:
        stopper.cancel()
        await stack.stop()
    if not start.cancelled():
        start.result()  # it ends by itself only with an error
    screen.say("stopped; the data stays in " + str(folder.path))


def listen_to_signals(stack: Stack, screen: Screen) -> asyncio.Event:
    """The first signal sets the event; a later one ends everything at once."""
    loop = asyncio.get_running_loop()
    stop_wanted = asyncio.Event()
    first_at = 0.0

    def on_signal() -> None:
        nonlocal first_at
        if not stop_wanted.is_set():
            first_at = loop.time()
            stop_wanted.set()
            screen.say("stopping: what was begun is finished first (once more to stop at once)")
        elif loop.time() - first_at > SAME_SIGNAL_SEC:
            stack.kill_all()

    stop_signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else: started by nohup, meant to outlive its terminal
        stop_signals.append(signal.SIGHUP)
    for number in stop_signals:
        loop.add_signal_handler(number, on_signal)
    return stop_wanted


async def start_and_watch(stack: Stack, settings: LocalSettings, screen: Screen) -> None:
    """Starts the stack, tells how to use it, then shows what its programs complain about, forever."""
    await stack.start()
    tails = stack.tails()
    screen.say(welcome(stack, settings))
    while True:
        for tail in tails:
            for line in tail.new_lines():
                screen.note(tail.name, line)
        await asyncio.sleep(TAIL_INTERVAL_SEC)


def welcome(stack: Stack, settings: LocalSettings) -> str:
    """The text that a user needs to make the first call."""
    port = example.receiver_port()
    given = settings.bootstrap_api_key is not None
    key = "the one in TE_BOOTSTRAP_API_KEY" if given else stack.api_key
    commands = example.request_commands(stack.url, "$TE_BOOTSTRAP_API_KEY" if given else stack.api_key, port)
    return f"""
Task Executor is ready: {stack.url} (REST, gRPC, gRPC-Web)

  API key    {key}
  data       {settings.data_dir.absolute()} (logs in logs/, addresses and process ids in run.json)
  database   {"TE_DATABASE_URL" if settings.database_url else "embedded PostgreSQL"}
  delivery   {delivery(settings)}
  stop       Ctrl-C

Try it. In a second terminal, a receiver that prints what it gets:

{example.receiver_command(port)}

In a third one, an endpoint, a job, and what became of it:

{commands}"""


def delivery(settings: LocalSettings) -> str:
    """Where deliveries may go, in words: looser here than in production, so it is said."""
    if not settings.egress_allow:
        return "to public addresses only"
    if settings.egress_allow == "loopback":
        return "to public addresses and, in this mode only, to this machine (TE_EGRESS_ALLOW=loopback)"
    return f"to public addresses and TE_EGRESS_ALLOW={settings.egress_allow}"
