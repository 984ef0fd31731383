"""The Dockerfile and what it puts into the image."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator

import pytest

from taskexecutor_common.rpc.server import RpcServer
from tests.contract.deploy.files import ROOT, commands, pyproject, text

DOCKERFILE = "deploy/docker/Dockerfile"
PROBE = "deploy/docker/probe.py"


def copied() -> list[str]:
    """What the build takes from the repository."""
    lines = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+)$", text(DOCKERFILE), re.MULTILINE)
    return [source.rstrip("/") for line in lines for source in line.split()[:-1]]


def let_through() -> list[str]:
    lines = text(".dockerignore").splitlines()
    assert "*" in lines, "the list of exceptions is one only if everything else is ignored"
    return [line[1:].rstrip("/") for line in lines if line.startswith("!")]


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_exists_and_is_let_through(source: str) -> None:
    assert (ROOT / source).exists()
    assert [path for path in let_through() if path == source or path.startswith(f"{source}/")]


@pytest.mark.parametrize("path", let_through())
def test_nothing_is_let_through_that_is_not_copied(path: str) -> None:
    assert [source for source in copied() if path == source or path.startswith(f"{source}/")]


def test_everything_that_a_service_is_installed_from_is_copied() -> None:
    (packages,) = re.findall(r"(\./proto .*?) \\\n", text(DOCKERFILE))
    for folder in ("proto", "libs/common", "services"):
        assert f"./{folder}" in packages
        assert folder in copied()


def test_the_python_is_one_that_the_code_runs_on() -> None:
    (version,) = re.findall(r"^ARG PYTHON_VERSION=(\S+)$", text(DOCKERFILE), re.MULTILINE)
    wanted = pyproject("pyproject.toml")["project"]["requires-python"].removeprefix(">=")
    assert [int(part) for part in version.split(".")] >= [int(part) for part in wanted.split(".")]


def test_the_image_does_not_run_as_root() -> None:
    assert re.findall(r"^USER (.+)$", text(DOCKERFILE), re.MULTILINE) == ["10001:10001"]


def test_the_commands_that_the_dockerfile_speaks_of_exist() -> None:
    named = set(re.findall(r"taskexecutor-(\w+)", text(DOCKERFILE)))
    assert {f"taskexecutor-{name}" for name in named} <= commands()


@pytest.fixture
async def server() -> AsyncIterator[RpcServer]:
    server = RpcServer("127.0.0.1:0", grace_sec=0)
    await server.start()
    yield server
    await server.stop()


async def probe(port: int | None) -> tuple[int | None, str]:
    command = [sys.executable, str(ROOT / PROBE), f"127.0.0.1:{port}"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(20):
        _, said = await process.communicate()
    return process.returncode, said.decode()


async def test_the_probe_finds_a_server_that_serves(server: RpcServer) -> None:
    assert await probe(server.port) == (0, "")


async def test_the_probe_fails_on_a_server_that_does_not_serve(server: RpcServer) -> None:
    await server.set_serving(False)
    assert await probe(server.port) == (1, f"127.0.0.1:{server.port}: not serving\n")


async def test_the_probe_fails_where_nobody_listens(server: RpcServer) -> None:
    port = server.port
    await server.stop()
    assert await probe(port) == (1, f"127.0.0.1:{port}: UNAVAILABLE\n")
