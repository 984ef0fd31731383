"""Settings of the launcher."""

import pathlib

import pytest

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


def test_tls_between_services_of_one_machine_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^TE_TLS_CA_FILE, TE_TLS_CERT_FILE: .* leave it unset$"):
        LocalSettings.from_environment({"TE_TLS_CERT_FILE": "c", "TE_TLS_CA_FILE": "a", "TE_TLS_KEY_FILE": ""})
