"""A virtual environment per peer, made once from pinned requirements and kept in the benchmark's cache."""

from __future__ import annotations

import asyncio
import pathlib
import sys

from bench.places import CACHE, HERE

INSTALL_SEC = 600


class PeerUnavailable(Exception):
    """Why a peer cannot take part; the message is for the user."""


async def python_of(peer: str) -> pathlib.Path:
    """The interpreter of a peer's environment, made and filled first where that was not done yet. Raises PeerUnavailable."""
    folder = CACHE / peer
    python = folder / "bin" / "python"
    requirements = HERE / "peers" / "requirements" / f"{peer}.txt"
    installed = folder / ".installed"  # holds the requirements as they were
    if python.exists() and installed.exists() and installed.read_text() == requirements.read_text():
        return python
    uv = str(pathlib.Path(sys.executable).with_name("uv"))
    await _run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
    await _run(uv, "pip", "install", "--quiet", "--python", str(python), "--requirement", str(requirements))
    installed.write_text(requirements.read_text())
    return python


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(INSTALL_SEC):
            _, errors = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise PeerUnavailable(f"{' '.join(command[1:3])}: {errors.decode(errors='replace').strip()[-500:]}")


def version_of(peer: str) -> str:
    """The version that the pinned requirements name."""
    lines = (HERE / "peers" / "requirements" / f"{peer}.txt").read_text().splitlines()
    return next(line.split("==")[1].split()[0] for line in lines if line.startswith(f"{peer}=="))
