"""libpq's own parameters in TE_DATABASE_URL: services speak TLS with the database, and with no other server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from taskexecutor_common.errors import Unavailable
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.migrate import migrate
from tests.integration.tls.postgres_with_tls import USER, PostgresWithTls
from tests.support.certificates import Authority
from tests.support.waiting import wait_until

NAME = "over-tls"
POOLS = 2  # of each Database
PATIENCE_SEC = 0.5  # for what is to fail
CONNECTIONS = """
    SELECT s.ssl, s.client_dn FROM pg_stat_activity AS a JOIN pg_stat_ssl AS s USING (pid) WHERE a.application_name = %s
"""


@asynccontextmanager
async def database_at(url: str) -> AsyncIterator[Database]:
    """A service's pools, not open yet."""
    database = Database(url, pool_size=1, application_name=NAME, acquire_timeout_sec=PATIENCE_SEC)
    try:
        yield database
    finally:
        await database.close()


async def works(database: Database) -> bool:
    try:
        await database.ping()
    except Unavailable:
        return False
    return True


async def test_every_connection_of_a_service_is_verified_on_both_sides(postgres: PostgresWithTls) -> None:
    async with database_at(postgres.url(postgres.client())) as database:
        await database.open()
        await database.ping()
        assert postgres.look(CONNECTIONS, NAME) == [(True, f"/CN={USER}")] * POOLS


async def test_migrations_run_over_tls(postgres: PostgresWithTls) -> None:
    await migrate(postgres.url(postgres.client()))
    assert postgres.look("SELECT to_regclass('jobs') IS NOT NULL") == [(True,)]


REFUSALS = {
    "a server of another authority": "certificate verify failed",
    "a server with another name": 'does not match host name "database.test"',
    "no client certificate": "requires a valid client certificate",
    "a client certificate of another authority": "unknown ca",
    "a client certificate of another user": "certificate authentication failed",
    "clear text": "no encryption",
}


def url_with(fault: str, postgres: PostgresWithTls, stranger: Authority, authority: Authority) -> str:
    client = postgres.client()
    match fault:
        case "a server of another authority":
            return postgres.url(client, sslrootcert=str(stranger.file))
        case "a server with another name":
            return postgres.url(client, host="database.test", hostaddr="127.0.0.1")
        case "no client certificate":
            return postgres.url(None)
        case "a client certificate of another authority":
            return postgres.url(postgres.client(by=stranger))
        case "a client certificate of another user":
            return postgres.url(authority.issue("somebody"))
        case "clear text":
            return postgres.url(client, sslmode="disable")
    raise AssertionError(fault)


@pytest.mark.parametrize("fault", REFUSALS)
async def test_a_service_does_not_start_and_says_why(
    postgres: PostgresWithTls,
    database_authority: Authority,
    stranger: Authority,
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with database_at(url_with(fault, postgres, stranger, database_authority)) as database:
        with pytest.raises(Unavailable):
            await database.open(timeout_sec=PATIENCE_SEC)
    assert re.search(REFUSALS[fault], caplog.text)
    assert postgres.look(CONNECTIONS, NAME) == []


async def test_a_pool_that_connects_again_verifies_again(
    postgres: PostgresWithTls,
    database_authority: Authority,
    stranger: Authority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = postgres.url(postgres.client())

    def is_verified() -> bool:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return False
        return True

    async with database_at(url) as database:
        await database.open()
        try:
            postgres.show(stranger)
            postgres.reload()
            await wait_until(lambda: not is_verified(), what="the other certificate")
            postgres.look("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", NAME)
            await wait_until(lambda: postgres.look(CONNECTIONS, NAME) == [], what="the end of the connections")
            assert not await works(database)
            assert not await works(database)  # the first only found that its connection was gone
            assert "certificate verify failed" in caplog.text
            assert postgres.look(CONNECTIONS, NAME) == []
        finally:
            postgres.show(database_authority)
            postgres.reload()
        await wait_until(lambda: works(database), what="the database behind its own certificate again")
        assert (True, f"/CN={USER}") in postgres.look(CONNECTIONS, NAME)
