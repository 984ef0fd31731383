"""The Dockerfile and what it puts into the image."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.rpc.tls import Tls
from tests.contract.deploy.files import ROOT, commands, pyproject, text
from tests.support.certificates import Authority

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
    final_stage = text(DOCKERFILE).split("\nFROM ")[-1]
    user, rest = re.split(r"^USER ", final_stage, flags=re.MULTILINE)[1].split("\n", 1)
    assert user == "10001:10001"
    assert re.findall(r"^([A-Z]+) ", rest, re.MULTILINE) == ["ENTRYPOINT"]


def test_what_runs_belongs_to_root_and_no_file_gives_rights() -> None:
    """The services' user cannot change their code."""
    assert not re.search(r"--chown|\bchown\b|chmod \S*[+]s|--chmod=[2467]\d{3}|setcap", text(DOCKERFILE))


def test_no_secret_is_built_into_the_image() -> None:
    names = re.findall(r"^(?:ARG|ENV) (.+)$", text(DOCKERFILE), re.MULTILINE)
    assert [line for line in names if re.search(r"TE_|KEY|SECRET|PASSWORD|TOKEN", line)] == []


def test_the_commands_that_the_dockerfile_speaks_of_exist() -> None:
    named = set(re.findall(r"taskexecutor-(\w+)", text(DOCKERFILE)))
    assert {f"taskexecutor-{name}" for name in named} <= commands()


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    authority = Authority(tmp_path)
    issued = authority.issue(names=[PEER_NAME])
    return TlsFiles(str(issued.certificate), str(issued.key), str(authority.file))


@pytest.fixture
async def server() -> AsyncIterator[RpcServer]:
    server = RpcServer("127.0.0.1:0", grace_sec=0)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def secure_server(files: TlsFiles) -> AsyncIterator[RpcServer]:
    server = RpcServer("127.0.0.1:0", grace_sec=0, tls=Tls(files))
    await server.start()
    yield server
    await server.stop()


async def probe(port: int | None, **environment: str) -> tuple[int | None, str]:
    command = [sys.executable, str(ROOT / PROBE), f"127.0.0.1:{port}"]
    process = await asyncio.create_subprocess_exec(
        *command, stderr=asyncio.subprocess.PIPE, env=dict(os.environ) | environment
    )
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


async def test_the_probe_speaks_tls_where_the_service_does(secure_server: RpcServer, files: TlsFiles) -> None:
    settings = {
        "TE_TLS_CERT_FILE": files.certificate,
        "TE_TLS_KEY_FILE": files.key,
        "TE_TLS_CA_FILE": files.authority,
    }
    assert await probe(secure_server.port, **settings) == (0, "")
    await secure_server.set_serving(False)
    assert await probe(secure_server.port, **settings) == (1, f"127.0.0.1:{secure_server.port}: not serving\n")


async def test_the_probe_fails_where_it_has_no_certificate(secure_server: RpcServer) -> None:
    assert await probe(secure_server.port) == (1, f"127.0.0.1:{secure_server.port}: UNAVAILABLE\n")
