"""The order in which the system stops, with stand-ins for its programs."""

import pathlib
import signal
from collections.abc import Callable, Iterator

import pytest

from taskexecutor_local.data_folder import DataFolder
from taskexecutor_local.process import Process, Program, State
from taskexecutor_local.settings import LocalSettings
from taskexecutor_local.stack import Stack

NAMES = ("postgres", "api", "scheduler", "dispatcher", "envoy")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[DataFolder]:
    with DataFolder(tmp_path / "data") as held:
        yield held


async def test_the_gateway_stops_first_and_the_database_last(
    folder: DataFolder, make_program: Callable[..., Program], tmp_path: pathlib.Path
) -> None:
    stack = Stack(LocalSettings(http_port=0), folder, {})
    for name in NAMES:
        stop_signal = signal.SIGINT if name == "postgres" else signal.SIGTERM
        stack.processes[name] = Process(make_program(name, stop_signal=stop_signal), lambda _: None)
        await stack.processes[name].start()
    await stack.stop()
    stopped = (tmp_path / "stops").read_text().split()
    assert (stopped[0], sorted(stopped[1:4]), stopped[4]) == ("envoy", ["api", "dispatcher", "scheduler"], "postgres")
    assert all(process.state is State.STOPPED for process in stack.processes.values())


async def test_a_stack_that_never_started_stops(folder: DataFolder) -> None:
    await Stack(LocalSettings(http_port=0), folder, {}).stop()


def test_the_programs_get_the_users_settings_but_not_the_launchers(folder: DataFolder) -> None:
    surroundings = {
        "TE_HTTP_PORT": "1",
        "TE_DATA_DIR": "/x",
        "TE_BOOTSTRAP_API_KEY": "te_1234_12345678",
        "TE_LOG_LEVEL": "debug",
    }
    environment = Stack(LocalSettings(http_port=0), folder, surroundings).environment()
    assert environment["TE_LOG_LEVEL"] == "debug"
    assert environment["TE_EGRESS_ALLOW"] == "loopback"
    assert not {"TE_HTTP_PORT", "TE_DATA_DIR", "TE_BOOTSTRAP_API_KEY"} & environment.keys()


def test_keys_made_once_are_the_same_at_the_next_start(folder: DataFolder) -> None:
    first, second = (Stack(LocalSettings(http_port=0), folder, {}) for _ in range(2))
    assert first.api_key == second.api_key
    assert first.environment()["TE_SECRET_ENCRYPTION_KEY"] == second.environment()["TE_SECRET_ENCRYPTION_KEY"]


def test_a_given_key_is_used_and_not_written_down(folder: DataFolder) -> None:
    assert (
        Stack(LocalSettings(http_port=0, bootstrap_api_key="te_abcd_abcdef01"), folder, {}).api_key
        == "te_abcd_abcdef01"
    )
    assert not (folder.path / "api_key").exists()
