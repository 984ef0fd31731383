"""Leftovers of a launcher that was killed are ended; nothing else is touched."""

import subprocess
from collections.abc import Iterator

import psutil
import pytest

from taskexecutor_local.leftovers import end_leftovers, identify


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_recorded_process_that_still_lives_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    assert end_leftovers({"processes": {"api": identify(sleeper.pid)}}) == ["api"]
    assert not psutil.pid_exists(sleeper.pid)


@pytest.mark.parametrize("other", [{"started": 1.0}, {"command": ["taskexecutor-api"]}])
def test_another_process_with_the_same_id_is_left_alone(
    sleeper: subprocess.Popen[bytes], other: dict[str, object]
) -> None:
    entry = identify(sleeper.pid)
    assert entry is not None
    assert end_leftovers({"processes": {"api": entry | other}}) == []
    assert sleeper.poll() is None


def test_without_a_record_there_is_nothing_to_do() -> None:
    assert end_leftovers({}) == []
    assert end_leftovers({"processes": {"api": None}}) == []
