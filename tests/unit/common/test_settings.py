"""Settings that no service could use are named, all at once, before anything is started; those it can use are taken."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from taskexecutor_common.config.addresses import metrics_address
from taskexecutor_common.config.settings import (
    ApiSettings,
    DatabaseSettings,
    DispatcherSettings,
    SchedulerSettings,
    faults_in,
    load,
)
from taskexecutor_common.crypto import generate_entry
from taskexecutor_common.observability.server import serve_metrics
from taskexecutor_common.rpc.server import RpcServer

SERVICES = {"api": ApiSettings, "scheduler": SchedulerSettings, "dispatcher": DispatcherSettings}
KEY = base64.b64encode(bytes(range(32))).decode()
GOOD = {"TE_DATABASE_URL": "postgresql://nowhere", "TE_SECRET_ENCRYPTION_KEY": KEY}
PASSWORD = "hunter2"


def faults(settings: type[BaseSettings], **variables: str) -> dict[str, str]:
    return faults_in(settings, GOOD | variables)


@pytest.mark.parametrize("ring", ["", PASSWORD, f"k1:{PASSWORD}", f"k1:{KEY},{PASSWORD}", f"k1:{KEY},k1:{KEY}"])
@pytest.mark.parametrize("settings", [ApiSettings, DispatcherSettings])
def test_a_key_ring_that_cannot_be_read_is_named(settings: type[BaseSettings], ring: str) -> None:
    found = faults(settings, TE_SECRET_ENCRYPTION_KEY=ring)
    assert found.keys() == {"TE_SECRET_ENCRYPTION_KEY"}
    assert "entry " in found["TE_SECRET_ENCRYPTION_KEY"]


def test_a_key_ring_of_several_keys_is_good() -> None:
    assert faults(ApiSettings, TE_SECRET_ENCRYPTION_KEY=f"{generate_entry()}, {generate_entry()}") == {}


@pytest.mark.parametrize("allowed", ["foo", "10.1.0.1/16", "loopback,10.1.0.0/33", "169.254.0.0/16"])
def test_an_egress_policy_that_cannot_be_read_is_named_with_its_word(allowed: str) -> None:
    found = faults(DispatcherSettings, TE_EGRESS_ALLOW=allowed)
    assert found.keys() == {"TE_EGRESS_ALLOW"}
    assert f"'{allowed.split(',')[-1]}'" in found["TE_EGRESS_ALLOW"]


@pytest.mark.parametrize("allowed", ["", "loopback", "private, 10.1.0.0/16,", "fd12::/16,127.0.0.1"])
def test_an_egress_policy_that_can_be_read_is_good(allowed: str) -> None:
    assert faults(DispatcherSettings, TE_EGRESS_ALLOW=allowed) == {}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "expected postgresql://"),
        ("cockroachdb://root@cockroach:26257/defaultdb", "expected postgresql://"),
        ("postgresql://u:p%zz@h/d", "expected postgresql://"),
        ("host=h passwd=p", "expected postgresql://"),
        ("postgresql://h:port/d", "port is no number of 1 to 65535"),
        ("postgresql://h:99999/d", "port is no number of 1 to 65535"),
        ("host=h port=0", "port is no number of 1 to 65535"),
        ("postgresql://u:pass/word@h/d", "port is no number of 1 to 65535"),
    ],
)
def test_a_connection_string_that_cannot_be_read_is_named(url: str, words: str) -> None:
    found = faults(DatabaseSettings, TE_DATABASE_URL=url)
    assert found.keys() == {"TE_DATABASE_URL"}
    assert words in found["TE_DATABASE_URL"]


@pytest.mark.parametrize(
    "url",
    [
        "",  # all of it from libpq's own variables
        "postgresql://u:p%40ss@h:5432/d?sslmode=verify-full",
        "postgres://root@cockroach:26257/defaultdb?sslmode=disable",
        "postgresql://a,b:5433/d?target_session_attrs=read-write",
        "postgresql:///d?host=/run/postgresql",
        "postgresql://u@[::1]:5432/d",
        "host=/tmp dbname=d user=u password='it\\'s' port=5432",
        "service=ours",
    ],
)
def test_a_connection_string_that_libpq_reads_is_good(url: str) -> None:
    assert faults(DatabaseSettings, TE_DATABASE_URL=url) == {}


@pytest.mark.parametrize(
    "url",
    [
        PASSWORD,
        f"postgresql://u:{PASSWORD} {PASSWORD}@h/d",
        f"postgresql://u:{PASSWORD}%zz@h/d",
        f"postgresql://u:{PASSWORD}@[::1/d",
        f"postgresql://u:{PASSWORD}@h:port/d",
        f"postgresql://u:1/{PASSWORD}@h/d",
        f"host=h password='{PASSWORD}",
    ],
)
@pytest.mark.parametrize("ring", [PASSWORD, f"{PASSWORD}:{PASSWORD}", f"k1:{PASSWORD}"])
def test_a_secret_that_cannot_be_used_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, ring: str
) -> None:
    monkeypatch.setenv("TE_DATABASE_URL", url)
    monkeypatch.setenv("TE_SECRET_ENCRYPTION_KEY", ring)
    with pytest.raises(SystemExit):
        load(DispatcherSettings)
    shown = capsys.readouterr()
    assert "TE_SECRET_ENCRYPTION_KEY: " in shown.err
    assert PASSWORD not in shown.out + shown.err


NO_ADDRESS = [
    "localhost",
    "127.0.0.1:",
    "127.0.0.1:http",
    "127.0.0.1:99999",
    "127.0.0.1:65536",
    "127.0.0.1:-1",
    "127.0.0.1:٣",
    "[::1",
    "[::1]",
    "[localhost]:9464",
    "http://localhost:9464",
    "*:9464",
    "two words:9464",
    "a..b:9464",
    f"{'x' * 64}:9464",
    "unix:",
    ":",
]


@pytest.mark.parametrize("address", [*NO_ADDRESS, "unix:/run/metrics.sock"])
def test_an_address_that_metrics_cannot_be_served_at_is_named(address: str) -> None:
    found = faults(SchedulerSettings, TE_METRICS_ADDR=address)
    assert found.keys() == {"TE_METRICS_ADDR"}
    assert "expected host:port, such as 0.0.0.0:9464, or nothing" in found["TE_METRICS_ADDR"]


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "0.0.0.0:0", ":0", "0", "127.0.0.1: 0 "])
def test_metrics_are_served_at_an_address_that_is_good(address: str) -> None:
    assert faults(SchedulerSettings, TE_METRICS_ADDR=address) == {}
    port, stop = serve_metrics(address)
    stop()
    assert port


@pytest.mark.parametrize("written", ["[::1]:9464", "::1:9464"])
def test_metrics_are_served_at_an_ipv6_address_with_and_without_brackets(written: str) -> None:
    assert metrics_address(written) == ("::1", 9464)


@pytest.mark.parametrize("address", ["", "[::]:9464", "[::1]:9464", ":::9464", "prometheus_side.internal:65535"])
def test_further_addresses_for_metrics_are_good(address: str) -> None:
    assert faults(SchedulerSettings, TE_METRICS_ADDR=address) == {}


@pytest.mark.parametrize("address", [*NO_ADDRESS, "", "50051", ":50051", "::1:50051"])
@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (ApiSettings, "TE_LISTEN_ADDR"),
        (SchedulerSettings, "TE_INTERNAL_LISTEN_ADDR"),
        (DispatcherSettings, "TE_INTERNAL_LISTEN_ADDR"),
    ],
)
def test_an_address_that_cannot_be_listened_at_is_named(
    settings: type[BaseSettings], variable: str, address: str
) -> None:
    found = faults(settings, **{variable: address})
    assert found.keys() == {variable}
    assert "expected host:port, such as 0.0.0.0:50051 or [::]:50051, or unix:PATH" in found[variable]


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "0.0.0.0:0", "127.0.0.1:0 ", "unix:{folder}/a.sock"])
async def test_an_address_that_is_good_is_listened_at(tmp_path: Path, address: str) -> None:
    address = address.format(folder=tmp_path)
    assert faults(ApiSettings, TE_LISTEN_ADDR=address) == {}
    server = RpcServer(address, grace_sec=0)
    await server.start()
    await server.stop()


@pytest.mark.parametrize("address", ["[::]:50051", "[::1]:0", "unix:api.sock", "unix:///run/a b", "unix-abstract:api"])
def test_further_addresses_to_listen_at_are_good(address: str) -> None:
    assert faults(ApiSettings, TE_LISTEN_ADDR=address) == {}


@pytest.mark.parametrize("address", [*NO_ADDRESS, "50053", ":50053", "dispatcher-1:0", "dns:///dispatcher"])
def test_an_address_that_nobody_can_call_is_named(address: str) -> None:
    found = faults(DispatcherSettings, TE_ADVERTISE_ADDR=address)
    assert found.keys() == {"TE_ADVERTISE_ADDR"}
    assert "expected host:port, such as dispatcher-1:50053" in found["TE_ADVERTISE_ADDR"]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "dispatcher-1:50053",
        "10.0.0.7:1",
        "[fd12::7]:65535",
        "dns:///dispatcher-1:50053",
        "ipv4:10.0.0.7:1",
        "unix:/s",
    ],
)
def test_an_address_that_others_can_call_is_good(address: str) -> None:
    assert faults(DispatcherSettings, TE_ADVERTISE_ADDR=address) == {}


BAD = {
    "TE_DATABASE_URL": "nonsense",
    "TE_SECRET_ENCRYPTION_KEY": PASSWORD,
    "TE_EGRESS_ALLOW": "foo",
    "TE_METRICS_ADDR": "localhost",
    "TE_ADVERTISE_ADDR": "dispatcher-1",
    "TE_INTERNAL_LISTEN_ADDR": ":50053",
    "TE_LEASE_GRACE_MS": "soon",
}


def test_all_bad_settings_are_named_at_once() -> None:
    assert faults_in(DispatcherSettings, BAD).keys() == BAD.keys()


@pytest.mark.parametrize("service", SERVICES)
def test_the_check_and_the_service_name_the_same_settings_and_end_with_status_2(service: str) -> None:
    command = str(Path(sys.executable).parent / f"taskexecutor-{service}")
    environment = os.environ | BAD
    check, start = (
        subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, timeout=60)
        for arguments in (["--check-config"], [])
    )
    assert (check.returncode, check.stdout) == (start.returncode, start.stdout) == (2, "")
    assert check.stderr == start.stderr
    first, *lines = check.stderr.splitlines()
    assert first == "bad configuration:"
    assert {line.split(":")[0].strip() for line in lines} == faults_in(SERVICES[service], BAD).keys()


def test_a_grace_that_no_tick_could_keep_is_refused() -> None:
    """Every tick is noticed a moment late: without a grace, a job that skips what it missed would never fire."""
    assert list(faults(SchedulerSettings, TE_CRON_MISFIRE_GRACE_SEC="0")) == ["TE_CRON_MISFIRE_GRACE_SEC"]
