"""`make bench`: measures this system, ceilings and peers in one run, and prints one table."""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from bench.arena import Arena, open_arena
from bench.machine import facts
from bench.plan import Plan
from bench.receivers.nginx_binary import NginxUnavailable
from bench.results import Results
from bench.scenarios import create, cron, drain, growth, idle, latency, lateness, noisy_neighbour, tuning
from bench.table import print_table
from taskexecutor_local.postgres import PostgresError

Scenario = Callable[[Arena], Awaitable[None]]
WHOLE_RUN: dict[str, Scenario] = {
    module.NAME: module.run for module in (drain, create, latency, lateness, growth, cron, noisy_neighbour, idle)
}
SCENARIOS = WHOLE_RUN | {tuning.NAME: tuning.run}


def main() -> None:
    """Entry point: `python -m bench [SCENARIO ...]`, the whole run without a name.

    Exits 1 when it cannot begin, or was stopped; what was measured by then is kept aside.
    """
    wanted = sys.argv[1:] or list(WHOLE_RUN)
    if unknown := set(wanted) - SCENARIOS.keys():
        sys.exit(f"there is no scenario {', '.join(sorted(unknown))}; there are: {', '.join(SCENARIOS)}")
    plan = Plan.from_environment(os.environ)
    begun_at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    results = Results(begun_at, facts(plan))
    is_stopped = False
    try:
        asyncio.run(run(wanted, plan, results))
    except (NginxUnavailable, PostgresError) as error:
        sys.exit(str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        is_stopped = True
    print_table(results)
    print(results.write("stopped" if is_stopped else part(wanted, plan)))
    sys.exit(1 if is_stopped else 0)


def part(wanted: Sequence[str], plan: Plan) -> str:
    """What distinguishes a run from a whole one; empty for that."""
    pieces = [] if set(WHOLE_RUN) <= set(wanted) else list(wanted)
    return "-".join([*pieces, *(["quick"] if plan.is_quick else [])])


async def run(wanted: Sequence[str], plan: Plan, results: Results) -> None:
    """Runs the scenarios one after the other. SIGTERM and Ctrl-C end it in good order, by cancelling it."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_arena(plan, results) as arena:
        results.facts["postgres"] = await arena.postgres.settings()
        results.facts["versions"]["nginx"] = arena.receiver.version
        for name in wanted:
            begin = time.monotonic()
            arena.say(f"{name} ...")
            await SCENARIOS[name](arena)
            results.facts["durations_sec"][name] = round(time.monotonic() - begin, 1)
    results.facts["load_after"] = os.getloadavg()


if __name__ == "__main__":
    main()
