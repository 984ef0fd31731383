"""An authority of a system, one that has nothing to do with it, and what both have signed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles
from taskexecutor_common.rpc.tls import Tls
from tests.integration.tls.postgres_with_tls import PostgresWithTls, find_binaries
from tests.support import components
from tests.support.certificates import Authority

MakeFiles = Callable[..., TlsFiles]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The system's own."""
    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    """Somebody else's; even its name is the same."""
    return Authority(tmp_path)


@pytest.fixture
def make_files(authority: Authority) -> MakeFiles:
    """Files of a new service: by default what all services have."""

    def make(by: Authority = authority, trusting: Authority = authority, **issued: Any) -> TlsFiles:
        pair = by.issue(**{"names": [PEER_NAME], **issued})
        return TlsFiles(str(pair.certificate), str(pair.key), str(trusting.file))

    return make


@pytest.fixture
def tls(make_files: MakeFiles) -> Tls:
    """What a service of the system is."""
    return Tls(make_files())


@pytest.fixture(scope="session")
def database_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The database's own; nothing wants it to be the services'."""
    return Authority(tmp_path_factory.mktemp("database"), "Database authority")


@pytest.fixture(scope="session")
def installed_postgres(database_authority: Authority) -> Iterator[PostgresWithTls | None]:
    """A running server with TLS; None where none is installed."""
    binaries = find_binaries()
    if binaries is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="te-tls-") as folder:
        server = PostgresWithTls(binaries, Path(folder), database_authority)
        try:
            server.start()
            components.note("PostgreSQL with TLS", server.version)
            yield server
        finally:
            server.stop()


@pytest.fixture
def postgres(installed_postgres: PostgresWithTls | None) -> PostgresWithTls:
    """A running server with TLS."""
    if installed_postgres is None:
        pytest.skip("no PostgreSQL with TLS is installed; the embedded one has none")
    return installed_postgres
