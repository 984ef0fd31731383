"""The same POSTs from a bare aiohttp client: nothing durable, nothing recorded.

A program: `python -m bench.ceilings.raw_aiohttp URL COUNT`. It prints one JSON line: seconds, and its own CPU seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import aiohttp
import uvloop

from bench.job_input import job_input

IN_FLIGHT = 100
WARM_UP = 1_000


async def post_all(session: aiohttp.ClientSession, url: str, count: int) -> None:
    """Posts `count` jobs, IN_FLIGHT at a time. Raises for any answer but 200."""
    numbers = iter(range(count))

    async def post_some() -> None:
        for number in numbers:
            headers = {"Idempotency-Key": f"raw-{number}"}
            async with session.post(url, json=job_input(number), headers=headers) as answer:
                await answer.read()
                answer.raise_for_status()

    await asyncio.gather(*(post_some() for _ in range(IN_FLIGHT)))


async def measure(url: str, count: int) -> dict[str, float]:
    """Warms up, then takes the time."""
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:
        await post_all(session, url, WARM_UP)
        begin, cpu = time.perf_counter(), time.process_time()
        await post_all(session, url, count)
        return {"sec": time.perf_counter() - begin, "cpu_sec": time.process_time() - cpu}


def main() -> None:
    """Entry point of the program."""
    print(json.dumps(uvloop.run(measure(sys.argv[1], int(sys.argv[2])))), flush=True)


if __name__ == "__main__":
    main()
