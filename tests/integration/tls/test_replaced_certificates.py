"""Certificates that are replaced while services run are taken up, once they are whole and good."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import uuid
from pathlib import Path

import pytest

from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles
from taskexecutor_common.rpc import hints as hints_module
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.rpc.tls import Tls
from tests.integration.tls.conftest import MakeFiles
from tests.support.certificates import Authority
from tests.support.peers import Dispatcher, listening


@pytest.fixture
def files(make_files: MakeFiles, tmp_path: Path) -> TlsFiles:
    """Files at places of their own, to be replaced."""
    made = make_files()
    place = TlsFiles(*(str(tmp_path / f"service.{part}") for part in ("pem", "key", "ca")))
    replace_by(made, place)
    return place


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers look for peers, and so at their files, each time."""
    monkeypatch.setattr(hints_module, "_PEERS_FRESH_SEC", -1.0)


def replace_by(new: TlsFiles, place: TlsFiles) -> None:
    """Each file at once, as those who renew certificates do."""
    for source, target in zip(parts(new), parts(place), strict=True):
        put(source, target)


def parts(files: TlsFiles) -> tuple[str, str, str]:
    return files.certificate, files.key, files.authority


def put(source: str, target: str) -> None:
    shutil.copy(source, f"{target}.new")
    os.replace(f"{target}.new", target)


async def shown_by(dispatcher: Dispatcher, authority: Authority, caller: TlsFiles) -> bytes:
    """The certificate that a server shows, in PEM."""
    context = authority.trusting()
    context.load_cert_chain(caller.certificate, caller.key)
    _, writer = await asyncio.open_connection("127.0.0.1", dispatcher.port, ssl=context, server_hostname=PEER_NAME)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(der).encode()


def content(path: str) -> bytes:
    return Path(path).read_bytes()


async def test_a_server_shows_a_replaced_certificate_on_its_next_connection(
    files: TlsFiles, make_files: MakeFiles, authority: Authority
) -> None:
    caller = make_files()
    async with listening(Tls(files)) as dispatcher:
        assert await shown_by(dispatcher, authority, caller) == content(files.certificate)
        new = make_files()
        replace_by(new, files)
        assert await shown_by(dispatcher, authority, caller) == content(new.certificate)


def spoil(files: TlsFiles, how: str, make_files: MakeFiles) -> None:
    """Replaces what the files hold by what no peer would accept."""
    certificate = Path(files.certificate)
    match how:
        case "half":
            put(make_files().certificate, files.certificate)
        case "expired":
            replace_by(make_files(days=-1), files)
        case "empty":
            certificate.write_bytes(b"")
        case "gone":
            certificate.unlink()


@pytest.mark.parametrize("how", ["half", "empty", "gone", "expired"])
async def test_a_server_keeps_its_certificate_until_the_replacement_is_good(
    files: TlsFiles, make_files: MakeFiles, authority: Authority, how: str
) -> None:
    caller = make_files()
    old = content(files.certificate)
    async with listening(Tls(files)) as dispatcher:
        spoil(files, how, make_files)
        assert await shown_by(dispatcher, authority, caller) == old
        good = make_files()
        replace_by(good, files)
        assert await shown_by(dispatcher, authority, caller) == content(good.certificate)


async def test_a_caller_shows_a_replaced_certificate_with_its_next_hint(
    files: TlsFiles, make_files: MakeFiles, tls: Tls
) -> None:
    async with listening(tls) as dispatcher:
        hints = DispatcherHints(dispatcher.find, Tls(files))
        hints.wake([uuid.uuid4()])
        await dispatcher.next_wake()
        new = make_files()
        first, second = content(files.certificate), content(new.certificate)
        replace_by(new, files)
        hints.wake([uuid.uuid4()])
        await dispatcher.next_wake()
        assert dispatcher.callers == [first, second]
        await hints.stop()


async def test_lines_are_kept_while_the_files_are(files: TlsFiles, tls: Tls) -> None:
    async with listening(tls) as dispatcher:
        hints = DispatcherHints(dispatcher.find, Tls(files))
        first = await hints.peers.lines()
        assert await hints.peers.lines() == first
        await hints.stop()


async def test_a_new_authority_is_trusted_beside_the_old_one(
    files: TlsFiles, make_files: MakeFiles, authority: Authority, tmp_path: Path
) -> None:
    """How a system goes from one authority to the next: first all trust both, then certificates are replaced."""
    next_authority = Authority(tmp_path, "Next authority")
    both = tmp_path / "both.pem"
    both.write_text(authority.pem + next_authority.pem)
    of_the_next = make_files(by=next_authority)
    async with listening(Tls(files)) as dispatcher:
        put(str(both), files.authority)
        hints = DispatcherHints(dispatcher.find, Tls(TlsFiles(of_the_next.certificate, of_the_next.key, str(both))))
        hints.wake([queue := uuid.uuid4()])
        assert await dispatcher.next_wake() == queue
        await hints.stop()
