"""`make run`, as a user starts it: in a folder of its own, from another folder, without a terminal."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from taskexecutor_local.ports import free_ports

pytestmark = pytest.mark.e2e

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("postgres", "api", "scheduler", "dispatcher", "envoy")
START_SEC = 60.0
SECOND_START_SEC = 30.0
STOP_SEC = 45.0
POLL_SEC = 0.1


class MakeRun:
    """One `make run` on `data_dir`; its output goes to a file, so that it never waits for us."""

    def __init__(self, data_dir: pathlib.Path, port: int, **more_settings: str) -> None:
        self.data_dir = data_dir
        self.port = port
        self.output_path = data_dir.with_suffix(f".{time.monotonic_ns()}.txt")
        settings = {"TE_DATA_DIR": str(data_dir), "TE_HTTP_PORT": str(port)} | more_settings
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TE_")} | settings
        with self.output_path.open("w") as output:
            self.process = subprocess.Popen(
                ["make", "-C", str(ROOT), "run"],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.output_path.read_text()

    @property
    def facts(self) -> dict[str, Any]:
        return dict(json.loads((self.data_dir / "run.json").read_text()))

    @property
    def key(self) -> str:
        return (self.data_dir / "api_key").read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def pid(self, name: str) -> int:
        """0 while it is down."""
        return int((self.facts["processes"][name] or {"pid": 0})["pid"])

    def pids(self) -> list[int]:
        return [self.facts["pid"], *(self.pid(name) for name in NAMES)]

    def wait_ready(self, seconds: float = START_SEC) -> None:
        until(lambda: "is ready:" in self.output or self.process.poll() is not None, seconds, "the start")
        assert self.process.poll() is None, self.output

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Signals the whole group, as a terminal does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(STOP_SEC)


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(POLL_SEC)


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def call(run: MakeRun, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One request with the key that the run keeps in its folder."""
    request = urllib.request.Request(
        run.url + path,
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"authorization": f"Bearer {run.key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.loads(answer.read()))


def living(pids: list[int]) -> list[str]:
    """Command lines of those that still run, zombies aside."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def pasted(output: str) -> tuple[str, str]:
    """The receiver's command and the requests of the example, as printed."""
    receiver = re.search(r"^.* -m taskexecutor_local\.receiver \d+$", output, re.MULTILINE)
    requests = re.search(r"^API=.*?/executions .*?$", output, re.MULTILINE | re.DOTALL)
    assert receiver is not None, output
    assert requests is not None, output
    return receiver.group(), requests.group()


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("run") / "data"


@pytest.fixture(scope="module")
def system(data_dir: pathlib.Path) -> Iterator[MakeRun]:
    run = MakeRun(data_dir, free_ports(1)[0])
    try:
        run.wait_ready()
        yield run
    finally:
        run.stop()


def test_it_serves_on_its_port(system: MakeRun) -> None:
    assert status_of(f"{system.url}/healthz") == 200
    assert status_of(f"{system.url}/readyz") == 200


def test_each_service_is_a_process_that_its_command_line_names(system: MakeRun) -> None:
    for name in ("api", "scheduler", "dispatcher"):
        assert f"taskexecutor-{name}" in " ".join(psutil.Process(system.pid(name)).cmdline())


def test_it_says_that_deliveries_may_go_to_this_machine(system: MakeRun) -> None:
    assert "in this mode only, to this machine (TE_EGRESS_ALLOW=loopback)" in system.output


def test_the_printed_key_is_kept_for_its_owner_alone(system: MakeRun) -> None:
    path = system.data_dir / "api_key"
    assert path.read_text().strip() in system.output
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(shutil.which("curl") is None, reason="the example uses curl")
def test_the_printed_example_works_when_pasted(system: MakeRun) -> None:
    receiver_command, requests = pasted(system.output)
    with subprocess.Popen(["bash", "-c", f"exec {receiver_command}"], stdout=subprocess.PIPE, text=True) as receiver:
        try:
            assert receiver.stdout is not None
            assert "waiting for requests" in receiver.stdout.readline()
            shell = subprocess.run(["bash", "-c", requests], capture_output=True, text=True, check=True, cwd="/")
            execution = json.loads(shell.stdout.splitlines()[-1])["items"][0]
            assert (execution["status"], execution["output"]["status_code"]) == ("SUCCESS", 200)
        finally:
            receiver.terminate()
        assert "it works" in receiver.stdout.read()


def test_a_second_run_on_the_same_folder_is_refused(system: MakeRun) -> None:
    second = MakeRun(system.data_dir, free_ports(1)[0])
    assert second.process.wait(START_SEC) != 0
    assert f"already runs on the data folder {system.data_dir}" in second.output
    assert status_of(f"{system.url}/healthz") == 200


def test_a_port_that_is_taken_is_named_with_its_setting(system: MakeRun, tmp_path: pathlib.Path) -> None:
    second = MakeRun(tmp_path / "data", system.port)
    assert second.process.wait(START_SEC) != 0
    assert f"Port {system.port} cannot be used" in second.output
    assert "TE_HTTP_PORT" in second.output


def test_bad_settings_are_named_before_anything_is_started(tmp_path: pathlib.Path) -> None:
    bad = {"TE_EGRESS_ALLOW": "foo", "TE_SECRET_ENCRYPTION_KEY": "hunter2", "TE_LOG_LEVEL": "loud"}
    run = MakeRun(tmp_path / "data", free_ports(1)[0], **bad)
    assert run.process.wait(START_SEC) != 0
    assert set(re.findall(r"^(TE_\w+): ", run.output, re.MULTILINE)) == bad.keys()
    assert "hunter2" not in run.output
    assert "Traceback" not in run.output
    assert not run.data_dir.exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_process_is_started_again(system: MakeRun, name: str) -> None:
    first = system.pid(name)
    os.kill(first, signal.SIGKILL)
    until(lambda: system.pid(name) not in (0, first), 15, f"{name} again")
    until(lambda: status_of(f"{system.url}/readyz") == 200, 15, "ready again")


def test_it_stops_without_leaving_a_process_and_starts_again_quickly_with_its_data(system: MakeRun) -> None:
    """Stops the system of the tests above, so it comes after them."""
    pids = system.pids()
    assert call(system, "POST", "/configs", {"name": "kept", "values": {"sender": "me"}})["name"] == "kept"
    system.stop(signal.SIGINT)
    assert living(pids) == []
    assert not (system.data_dir / "run.json").exists()

    begin = time.monotonic()
    again = MakeRun(system.data_dir, system.port)
    try:
        again.wait_ready()
        assert time.monotonic() - begin < SECOND_START_SEC
        assert call(again, "GET", "/configs/kept")["values"] == {"sender": "me"}
    finally:
        again.stop()


def test_a_request_that_was_begun_is_answered_during_the_stop(data_dir: pathlib.Path) -> None:
    run = MakeRun(data_dir, free_ports(1)[0])
    body = json.dumps({"name": f"begun-{run.port}", "values": {}}).encode()
    try:
        run.wait_ready()
        connection = http.client.HTTPConnection("127.0.0.1", run.port, timeout=STOP_SEC)
        connection.putrequest("POST", "/configs")
        connection.putheader("authorization", f"Bearer {run.key}")
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body[:5])
        # The gateway has the first part: a later request on another connection was answered.
        assert status_of(f"{run.url}/healthz") == 200
        os.killpg(run.process.pid, signal.SIGTERM)
        until(lambda: status_of(f"{run.url}/healthz") == 0, 15, "the port closed")
        connection.send(body[5:])
        assert connection.getresponse().status == 201
        connection.close()
        assert run.process.wait(STOP_SEC) is not None
    finally:
        run.stop()


def test_a_killed_launcher_leaves_no_process_and_is_no_obstacle(data_dir: pathlib.Path) -> None:
    run = MakeRun(data_dir, free_ports(1)[0])
    run.wait_ready()
    pids = run.pids()
    os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait()
    until(lambda: living(pids) == [], 10, f"no process left of {pids}")
    again = MakeRun(data_dir, run.port)
    try:
        again.wait_ready(SECOND_START_SEC)
    finally:
        again.stop()
