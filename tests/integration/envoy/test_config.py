"""The configuration that is committed, and what its options change."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from taskexecutor_envoy.config import GatewayOptions, build_config
from taskexecutor_envoy.main import COMMITTED, DESCRIPTOR, main
from tests.integration.envoy.gateway import COMMAND


def built(**settings: Any) -> dict[str, Any]:
    """A configuration with these options."""
    return build_config(GatewayOptions(descriptor=DESCRIPTOR.read_bytes(), **settings))


def cluster(config: dict[str, Any]) -> dict[str, Any]:
    """The one cluster."""
    (found,) = config["static_resources"]["clusters"]
    return found


def validate(path: Path) -> None:
    """Lets Envoy judge the file; shows the reason alone, not the whole configuration that Envoy prints before it."""
    judged = subprocess.run(
        [*COMMAND, "--mode", "validate", "-c", str(path)], capture_output=True, text=True, timeout=60
    )
    assert judged.returncode == 0, judged.stderr[-1000:]


def test_the_committed_file_is_current() -> None:
    assert main(["--check"]) == 0


def test_a_stale_file_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "envoy.json"
    stale.write_text("{}")
    assert main(["--check", "--out", str(stale)]) == 1
    assert "not current" in capsys.readouterr().err


def test_envoy_accepts_the_committed_file(tmp_path: Path) -> None:
    text = COMMITTED.read_text()
    assert text.count('"/etc/envoy/descriptor.binpb"') == 1
    local = tmp_path / "envoy.json"
    local.write_text(text.replace("/etc/envoy/descriptor.binpb", str(DESCRIPTOR)))
    validate(local)


def test_the_committed_file_serves_docker_compose() -> None:
    config = json.loads(COMMITTED.read_text())
    (listener,) = config["static_resources"]["listeners"]
    assert listener["address"]["socket_address"] == {"address": "0.0.0.0", "port_value": 8080}
    assert "api" in json.dumps(cluster(config)["load_assignment"])
    assert cluster(config)["type"] == "STRICT_DNS"


@pytest.mark.parametrize(
    ("upstream", "kind", "address"),
    [
        ("api:50051", "STRICT_DNS", {"socket_address": {"address": "api", "port_value": 50051}}),
        ("10.0.0.7:50051", "STATIC", {"socket_address": {"address": "10.0.0.7", "port_value": 50051}}),
        ("[::1]:50051", "STATIC", {"socket_address": {"address": "::1", "port_value": 50051}}),
        ("unix:/run/api.sock", "STATIC", {"pipe": {"path": "/run/api.sock"}}),
    ],
)
def test_every_form_of_upstream_is_valid(tmp_path: Path, upstream: str, kind: str, address: dict[str, Any]) -> None:
    config = built(upstream=upstream)
    (endpoint,) = cluster(config)["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert cluster(config)["type"] == kind
    assert endpoint["endpoint"]["address"] == address
    path = tmp_path / "envoy.json"
    path.write_text(json.dumps(config))
    validate(path)


@pytest.mark.parametrize("upstream", ["api", "api:", ":1", "api:http", "api:70000"])
def test_an_upstream_that_is_no_address_is_refused(upstream: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        built(upstream=upstream)


def test_there_is_no_admin_interface_unless_asked_for() -> None:
    assert "admin" not in built()
    assert built(admin_socket="/run/admin.sock")["admin"] == {
        "address": {"pipe": {"path": "/run/admin.sock", "mode": 0o600}}
    }


def test_the_command_writes_what_was_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "envoy.json"
    asked = ["--listen", "127.0.0.1:9", "--upstream", "unix:/a.sock", "--admin-socket", "/b.sock"]
    assert main([*asked, "--descriptor", "inline", "--out", str(out)]) == 0
    config = json.loads(out.read_text())
    assert config == built(listen="127.0.0.1:9", upstream="unix:/a.sock", admin_socket="/b.sock")
