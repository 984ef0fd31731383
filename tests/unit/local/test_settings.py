"""Settings of the launcher."""

import pathlib

import pytest

from taskexecutor_common.crypto import generate_entry
from taskexecutor_local.settings import LocalSettings, SettingsError


def test_without_any_variable_the_defaults_hold() -> None:
    settings = LocalSettings.from_environment({"TE_HTTP_PORT": ""})
    assert (settings.http_port, settings.data_dir, settings.database_url) == (8080, pathlib.Path(".data"), None)
    assert settings.egress_allow == "loopback"


def test_all_faults_are_reported_at_once_and_no_value_is_shown() -> None:
    surroundings = {"TE_HTTP_PORT": "eighty", "TE_BOOTSTRAP_API_KEY": "my-secret"}
    with pytest.raises(SettingsError) as caught:
        LocalSettings.from_environment(surroundings)
    message = str(caught.value)
    assert "TE_HTTP_PORT" in message
    assert "TE_BOOTSTRAP_API_KEY" in message
    assert "my-secret" not in message


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TE_EGRESS_ALLOW", "foo", "'foo' is neither 'loopback', 'private' nor a network"),
        ("TE_SECRET_ENCRYPTION_KEY", "hunter2", "entry 1: the key is not 32 bytes"),
        ("TE_DATABASE_URL", "hunter2", "libpq cannot read it"),
        ("TE_LOG_LEVEL", "hunter2", "Input should be 'DEBUG'"),
        ("TE_RETENTION_DAYS", "hunter2", "Input should be a valid number"),
        ("TE_LEASE_GRACE_MS", "hunter2", "Input should be a valid integer"),
        ("TE_ADVERTISE_ADDR", "hunter2", "no port of 1 to 65535 at its end; expected host:port"),
    ],
)
def test_what_a_service_could_not_use_is_refused_by_name(variable: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        LocalSettings.from_environment({variable: value})
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{variable}: {words}")
    assert "hunter2" not in line


def test_a_database_of_ones_own_and_several_keys_are_taken() -> None:
    surroundings = {
        "TE_DATABASE_URL": "postgresql://u:p%40ss@h:5432/d?sslmode=disable",
        "TE_SECRET_ENCRYPTION_KEY": f"{generate_entry()},{generate_entry()}",
    }
    settings = LocalSettings.from_environment(surroundings)
    assert settings.database_url == surroundings["TE_DATABASE_URL"]
    assert settings.secret_encryption_key is not None
    assert settings.secret_encryption_key.get_secret_value() == surroundings["TE_SECRET_ENCRYPTION_KEY"]


@pytest.mark.parametrize("variable", ["TE_LISTEN_ADDR", "TE_INTERNAL_LISTEN_ADDR", "TE_METRICS_ADDR"])
def test_an_address_that_services_are_not_given_is_not_judged(variable: str) -> None:
    LocalSettings.from_environment({variable: "localhost"})


def test_tls_between_services_of_one_machine_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^TE_TLS_CA_FILE, TE_TLS_CERT_FILE: .* leave it unset$"):
        LocalSettings.from_environment({"TE_TLS_CERT_FILE": "c", "TE_TLS_CA_FILE": "a", "TE_TLS_KEY_FILE": ""})


def test_tls_is_one_of_all_the_faults() -> None:
    surroundings = {
        "TE_TLS_CERT_FILE": "c",
        "TE_HTTP_PORT": "eighty",
        "TE_EGRESS_ALLOW": "foo",
        "TE_LOG_LEVEL": "loud",
    }
    with pytest.raises(SettingsError) as caught:
        LocalSettings.from_environment(surroundings)
    assert {line.split(":")[0] for line in str(caught.value).splitlines()} == surroundings.keys()
