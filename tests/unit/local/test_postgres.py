"""The embedded PostgreSQL."""

import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Iterator

import psutil
import psycopg
import pytest

from taskexecutor_local.postgres import EmbeddedPostgres, PostgresError

FAST = {"fsync": "off", "shared_buffers": "16MB"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(tmp_path_factory.mktemp("pg"), FAST) as running:
        yield running


def only_value(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[call-overload]  # test queries are plain text
    assert row is not None
    return row[0]


def test_it_answers_over_tcp_with_its_password(server: EmbeddedPostgres) -> None:
    assert only_value(server.dsn, "SELECT host(inet_server_addr())") == "127.0.0.1"


def test_it_answers_over_the_unix_socket(server: EmbeddedPostgres) -> None:
    assert server.socket_dsn is not None
    assert only_value(server.socket_dsn, "SELECT inet_server_addr() IS NULL") is True


def test_it_refuses_a_wrong_password(server: EmbeddedPostgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.dsn.replace(server.password, "wrong"))


def test_it_takes_extra_settings(server: EmbeddedPostgres) -> None:
    assert only_value(server.dsn, "SHOW fsync") == "off"


def test_its_files_are_for_their_owner_alone(server: EmbeddedPostgres) -> None:
    assert server.cluster.stat().st_mode & 0o077 == 0
    assert (server.data_dir / "postgres_password").stat().st_mode & 0o077 == 0


def test_it_never_runs_as_root(server: EmbeddedPostgres) -> None:
    assert server.pid is not None
    assert psutil.Process(server.pid).uids().effective != 0


def test_rows_survive_a_kill_and_the_next_start_is_quick(tmp_path: pathlib.Path) -> None:
    server = EmbeddedPostgres(tmp_path)
    with server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE kept (n int)")
            connection.execute("INSERT INTO kept SELECT generate_series(1, 100)")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        server.stop()  # reaps it
        begin = time.monotonic()
        server.start()
        assert time.monotonic() - begin < 20
        assert only_value(server.dsn, "SELECT count(*) FROM kept") == 100


def test_a_lock_file_whose_process_id_now_belongs_to_somebody_else_is_no_obstacle(tmp_path: pathlib.Path) -> None:
    with EmbeddedPostgres(tmp_path, FAST) as first:
        lock = first.cluster / "postmaster.pid"
        content = lock.read_text().split("\n", 1)[1]
    owner = first.cluster.stat().st_uid
    with subprocess.Popen(["sleep", "60"], user=owner if os.geteuid() == 0 else None) as somebody:
        try:
            lock.write_text(f"{somebody.pid}\n{content}")
            os.chown(lock, owner, -1)
            with EmbeddedPostgres(tmp_path, FAST) as second:
                assert only_value(second.dsn, "SELECT 1") == 1
        finally:
            somebody.kill()


def test_an_interrupted_first_start_is_begun_anew(tmp_path: pathlib.Path) -> None:
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "PG_VERSION").write_text("half-made")
    with EmbeddedPostgres(tmp_path, FAST) as server:
        assert only_value(server.dsn, "SELECT 1") == 1


def test_a_folder_whose_path_is_too_long_for_a_socket_is_served_over_tcp_alone(tmp_path: pathlib.Path) -> None:
    with EmbeddedPostgres(tmp_path / ("long" * 25), FAST) as server:
        assert server.socket_dsn is None
        assert only_value(server.dsn, "SELECT 1") == 1


def test_a_server_that_cannot_start_says_why(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PostgresError, match="unrecognized configuration parameter"):
        EmbeddedPostgres(tmp_path, {"no_such_setting": "1"}).start()
