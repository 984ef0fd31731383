"""A service starts only with TLS files that its peers would accept, and says what is wrong with others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from taskexecutor_common.config.settings import SchedulerSettings, load
from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles, shake_hands
from tests.integration.tls.conftest import MakeFiles
from tests.support.certificates import Authority

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TE_DATABASE_URL", "postgresql://nowhere")


def variables(files: TlsFiles) -> dict[str, str]:
    return {
        "TE_TLS_CERT_FILE": files.certificate,
        "TE_TLS_KEY_FILE": files.key,
        "TE_TLS_CA_FILE": files.authority,
    }


def faults(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: TlsFiles) -> dict[str, str]:
    """Setting -> what a service that is started with these files says of it; an empty path is left out."""
    for name, path in variables(files).items():
        if path:
            monkeypatch.setenv(name, path)
    with pytest.raises(SystemExit) as ended:
        load(SchedulerSettings)
    assert ended.value.code == 2
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "bad configuration:"
    return dict(line.strip().split(": ", 1) for line in lines)


def test_good_files_are_taken(monkeypatch: pytest.MonkeyPatch, make_files: MakeFiles) -> None:
    files = make_files()
    for name, path in variables(files).items():
        monkeypatch.setenv(name, path)
    assert load(SchedulerSettings).tls == files


def test_without_files_there_is_no_tls() -> None:
    assert load(SchedulerSettings).tls is None


def test_empty_settings_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables(TlsFiles("", "", "")):
        monkeypatch.setenv(name, "")
    assert load(SchedulerSettings).tls is None


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (["key"], {"TE_TLS_KEY_FILE"}),
        (["authority"], {"TE_TLS_CA_FILE"}),
        (["key", "authority"], {"TE_TLS_KEY_FILE", "TE_TLS_CA_FILE"}),
        (["certificate"], {"TE_TLS_KEY_FILE", "TE_TLS_CA_FILE"}),
        (["certificate", "authority"], {"TE_TLS_KEY_FILE"}),
        (["certificate", "key"], {"TE_TLS_CA_FILE"}),
    ],
)
def test_a_part_of_the_three_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make_files: MakeFiles,
    missing: list[str],
    told: set[str],
) -> None:
    found = faults(monkeypatch, capsys, replace(make_files(), **dict.fromkeys(missing, "")))
    assert set(found) == told
    for text in found.values():
        assert text.endswith("TE_TLS_CERT_FILE, TE_TLS_KEY_FILE and TE_TLS_CA_FILE are set together or not at all")


@pytest.mark.parametrize(
    ("which", "setting"),
    [("certificate", "TE_TLS_CERT_FILE"), ("key", "TE_TLS_KEY_FILE"), ("authority", "TE_TLS_CA_FILE")],
)
@pytest.mark.parametrize(
    "content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnothing\n"], ids=["gone", "empty", "text"]
)
def test_a_file_that_cannot_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make_files: MakeFiles,
    tmp_path: Path,
    which: str,
    setting: str,
    content: bytes | None,
) -> None:
    bad = tmp_path / "bad.pem"
    if content is not None:
        bad.write_bytes(content)
    found = faults(monkeypatch, capsys, replace(make_files(), **{which: str(bad)}))
    assert set(found) == {setting}
    assert found[setting].startswith(f"{bad} ")
    assert ("No such file" in found[setting]) == (content is None)


def test_a_key_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make_files: MakeFiles
) -> None:
    other = make_files()
    found = faults(monkeypatch, capsys, replace(make_files(), key=other.key))
    assert set(found) == {"TE_TLS_KEY_FILE"}
    assert found["TE_TLS_KEY_FILE"].startswith(f"{other.key} does not hold the key of the certificate")


def test_an_encrypted_key_is_refused_and_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make_files: MakeFiles
) -> None:
    found = faults(monkeypatch, capsys, make_files(password="secret"))
    assert set(found) == {"TE_TLS_KEY_FILE"}
    assert "encrypted" in found["TE_TLS_KEY_FILE"]


def test_a_certificate_of_another_authority_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make_files: MakeFiles, stranger: Authority
) -> None:
    found = faults(monkeypatch, capsys, make_files(by=stranger))
    assert set(found) == {"TE_TLS_CA_FILE"}
    assert "refuses the certificate in TE_TLS_CERT_FILE" in found["TE_TLS_CA_FILE"]


def test_a_certificate_for_another_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make_files: MakeFiles
) -> None:
    found = faults(monkeypatch, capsys, make_files(names=["scheduler.internal"]))
    assert PEER_NAME in found["TE_TLS_CA_FILE"]


def test_an_expired_certificate_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make_files: MakeFiles
) -> None:
    found = faults(monkeypatch, capsys, make_files(days=-1))
    assert found["TE_TLS_CA_FILE"].endswith("certificate has expired")


def test_check_config_ends_with_status_2(make_files: MakeFiles) -> None:
    files = replace(make_files(), key=make_files().key)
    command = str(Path(sys.executable).parent / "taskexecutor-scheduler")
    done = subprocess.run(
        [command, "--check-config"], env=dict(os.environ) | variables(files), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "TE_TLS_KEY_FILE: " in done.stderr


def documented_commands() -> str:
    """The shell commands of the page that make certificates for a trial."""
    section = OPERATIONS.read_text().split("\n## TLS\n")[1].split("\n## ")[0]
    (block,) = [block for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) if "openssl" in block]
    return block


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on this machine")
def test_the_certificates_of_the_documented_commands_will_do(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-e"], input=documented_commands(), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for name in ("api", "scheduler", "dispatcher", "envoy"):
        shake_hands(TlsFiles(*(str(tmp_path / file) for file in (f"{name}.pem", f"{name}.key", "ca.pem"))))
        assert (tmp_path / f"{name}.key").stat().st_mode & 0o077 == 0
