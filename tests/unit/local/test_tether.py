"""Children end with their parent, and give up root where asked."""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from taskexecutor_local import tether
from tests.unit.local.waiting import is_gone, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's own")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
NOBODY = 65534

PARENT = """
import signal, subprocess, time
from taskexecutor_local import tether
child = subprocess.Popen(tether.command_line(["sleep", "60"], death_signal=signal.SIGTERM), start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


async def test_a_child_ends_when_its_parent_is_killed(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    await until(lambda: psutil.Process(child).name() == "sleep", "the child runs its command")
    parent.kill()
    await until(lambda: is_gone(child), "the child ended")


def run_as_nobody(command: list[str], *, reach_all: bool) -> subprocess.CompletedProcess[str]:
    line = tether.command_line(command, death_signal=signal.SIGKILL, user=(NOBODY, NOBODY), reach_all=reach_all)
    # extra_groups: the groups of some root, which must not stay.
    return subprocess.run(line, capture_output=True, text=True, check=False, extra_groups=[0, 4])


@needs_root
def test_a_program_run_as_another_user_is_that_user_and_in_no_group_of_root() -> None:
    assert run_as_nobody(["id", "-u"], reach_all=True).stdout == f"{NOBODY}\n"
    assert run_as_nobody(["id", "-G"], reach_all=True).stdout == f"{NOBODY}\n"


@needs_root
def test_only_with_reach_all_does_another_user_pass_a_closed_folder(tmp_path: pathlib.Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").write_text("inside")
    assert run_as_nobody(["cat", str(closed / "file")], reach_all=True).stdout == "inside"
    assert run_as_nobody(["test", "-r", str(closed / "file")], reach_all=True).returncode == 0
    assert run_as_nobody(["cat", str(closed / "file")], reach_all=False).returncode != 0


@needs_root
def test_reach_all_keeps_no_other_right_of_root() -> None:
    assert run_as_nobody(["chown", "root", "/tmp"], reach_all=True).returncode != 0
    assert run_as_nobody(["kill", "-0", str(os.getpid())], reach_all=True).returncode != 0
