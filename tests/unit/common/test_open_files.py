"""How many files a service may open."""

from __future__ import annotations

import subprocess
import sys

ASK = "from taskexecutor_common.runtime.process import open_as_many_files_as_allowed as ask; print(ask())"


def test_a_service_opens_as_many_files_as_its_hard_limit_allows() -> None:
    """Shells give 1024, which is less than a dispatcher may have deliveries under way."""
    command = f"ulimit -Sn 300; ulimit -Hn; {sys.executable} -c '{ASK}'; "
    hard, found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert found == hard
