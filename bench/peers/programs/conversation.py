"""Questions and answers with the benchmark: one JSON object a line, in and out. Needs nothing but Python."""

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

Answer = dict[str, Any]


def job_input(number: int) -> dict[str, Any]:
    """What a job carries; the same as bench/job_input.py, which these environments cannot import."""
    return {"order": number, "customer": f"customer-{number % 1000}", "amount": 12.5}


def say(**answer: Any) -> None:
    """Writes one answer."""
    print(json.dumps(answer), flush=True)


async def converse(commands: dict[str, Callable[..., Awaitable[Answer | None]]]) -> None:
    """Says that it is ready, then carries out commands, one by one, until its input ends."""
    say(ready=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        question = json.loads(line)
        try:
            answer = await commands[question.pop("op")](**question)
        except Exception as error:
            traceback.print_exc()
            say(error=repr(error))
        else:
            say(**(answer or {}))
