"""docs/tour.md does what it says: each command is run as pasted, and its answer compared with the page."""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from taskexecutor_local.ports import free_ports
from tests.e2e.conftest import make_key_in
from tests.e2e.system import System, fresh
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tour.md"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?P<where> [\w-]+)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PORT_OF_THE_PAGE = "9000"
COMMAND_SEC = 30.0
END = "end of command"
BY_CHANCE = (
    (re.compile(r"\b(job|exec)_[0-9a-f]{32}"), r"\1_ID"),
    (re.compile(r"req_[0-9a-f-]+"), "req_ID"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"), "TIME"),
    (re.compile(r'"next_run_at": "[^"]+"'), '"next_run_at": "TIME"'),
    (re.compile(r'_ms": \d+'), '_ms": 0'),
    (re.compile(r"follows in [\d.]+ s"), "follows in 0 s"),
)


@dataclass(frozen=True)
class Step:
    """A command of the page, and the answer that the page shows, if any."""

    command: str
    answer: str
    in_background: bool


def steps() -> list[Step]:
    blocks = list(BLOCK.finditer(PAGE.read_text()))
    return [
        Step(block["text"], following["text"] if following and following["kind"] != "sh" else "", bool(block["where"]))
        for block, following in zip(blocks, [*blocks[1:], None], strict=True)
        if block["kind"] == "sh"
    ]


def comparable(text: str) -> object:
    """An answer less ids and times; JSON as JSON, other text as its lines in any order, as object keys have none."""
    for pattern, instead in BY_CHANCE:
        text = pattern.sub(instead, text)
    return json.loads(text) if text.startswith("{") else sorted(line.rstrip(",") for line in text.splitlines())


class Terminal:
    """A shell that commands are pasted into, one after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def paste(self, command: str) -> str:
        """What the command prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho {END}\n".encode())
        async with asyncio.timeout(COMMAND_SEC):
            printed = await self._process.stdout.readuntil(f"{END}\n".encode())
        return printed.decode().removesuffix(f"{END}\n")


@pytest.fixture
async def terminal(system: System, tmp_path: pathlib.Path) -> AsyncIterator[Terminal]:
    """In a folder where the page finds its key: that of a namespace of its own."""
    (tmp_path / ".data").mkdir()
    (tmp_path / ".data" / "api_key").write_text((await make_key_in(system, fresh("tour"))).key)
    process = await asyncio.create_subprocess_exec(
        "bash",
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    yield Terminal(process)
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tour uses curl")
async def test_the_tour_answers_as_its_page_shows(system: System, terminal: Terminal, tmp_path: pathlib.Path) -> None:
    port = str(free_ports(1)[0])  # nobody listens there: the page's first delivery must fail
    here = {"http://127.0.0.1:8080": system.stack.url, PORT_OF_THE_PAGE: port, ".venv/bin/python": sys.executable}
    printed = tmp_path / "printed.txt"
    receiver: asyncio.subprocess.Process | None = None
    try:
        for step in steps():
            command = step.command
            for of_the_page, ours in here.items():
                command = command.replace(of_the_page, ours)
            if step.in_background:
                with printed.open("wb") as output:
                    receiver = await asyncio.create_subprocess_exec("bash", "-c", f"exec {command}", stdout=output)
                continue
            answer = (await terminal.paste(command)).replace(port, PORT_OF_THE_PAGE)
            assert comparable(answer) == comparable(step.answer), command
        await wait_until(lambda: "POST /emails/welcome" in printed.read_text(), what="the printed delivery")
    finally:
        if receiver is not None:
            receiver.terminate()
            await receiver.wait()
