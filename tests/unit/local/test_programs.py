"""Which processes there are, and where they listen."""

import pathlib

import pytest

from taskexecutor_local import programs
from taskexecutor_local.data_folder import DataFolder


def test_each_dispatcher_has_a_name_and_ports_of_its_own(tmp_path: pathlib.Path) -> None:
    names = programs.service_names(3)
    assert names == ("api", "scheduler", "dispatcher", "dispatcher-2", "dispatcher-3")
    addresses = programs.choose_addresses(DataFolder(tmp_path), 0, names)
    listening = [*addresses.targets.values(), *addresses.metrics.values(), f"127.0.0.1:{addresses.http_port}"]
    assert addresses.targets.keys() == addresses.metrics.keys() == set(names)
    assert len(set(listening)) == len(listening)


def test_a_further_dispatcher_runs_the_dispatchers_program(tmp_path: pathlib.Path) -> None:
    folder, names = DataFolder(tmp_path), programs.service_names(2)
    second = programs.service("dispatcher-2", programs.choose_addresses(folder, 0, names), folder, {})
    assert second.command[-1].endswith("/taskexecutor-dispatcher")
    assert second.log_path.name == "dispatcher-2.log"


@pytest.mark.parametrize(
    ("environment", "deadline_sec"),
    [
        ({}, 45.0),
        ({"TE_SHUTDOWN_TIMEOUT_SEC": "60"}, 75.0),
        ({"TE_WORKER_SHUTDOWN_TIMEOUT_SEC": "0"}, 15.0),
    ],
)
def test_a_service_is_killed_no_sooner_than_it_may_take_to_stop(
    tmp_path: pathlib.Path, environment: dict[str, str], deadline_sec: float
) -> None:
    folder, names = DataFolder(tmp_path), programs.service_names(1)
    program = programs.service("dispatcher", programs.choose_addresses(folder, 0, names), folder, environment)
    assert program.stop_deadline_sec == deadline_sec
