"""One system for the whole session, as `make run` starts it: real PostgreSQL, real services as processes, real Envoy."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import aiohttp
import grpc.aio
import psycopg
import pytest

from taskexecutor_common.api_keys import generate_key
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.store.admin import write_key
from taskexecutor_common.store.database import Database
from taskexecutor_local.stack import running_stack
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, instant
from tests.support import components
from tests.support.receiver import Receiver, running_receiver

CLIENT_TIMEOUT = aiohttp.ClientTimeout(total=30)

EVERY_MINUTE = {"cron": "* * * * *", "timezone": "UTC"}

MakeKey = Callable[..., Awaitable[Rest]]


def pytest_configure(config: pytest.Config) -> None:
    """Names the mark of tests that wait for the clock."""
    config.addinivalue_line("markers", "slow: waits for a full minute; runs last in its folder")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is in this folder, and orders it so that waiting for the minute costs little."""
    here = pathlib.Path(__file__).parent
    places = [place for place, item in enumerate(items) if item.path.is_relative_to(here)]
    for place, item in zip(places, sorted((items[place] for place in places), key=_turn), strict=True):
        item.add_marker("e2e")
        items[place] = item


def _turn(item: pytest.Item) -> int:
    """What starts the clock comes first, what waits for it last."""
    if item.get_closest_marker("slow"):
        return 2
    return 0 if {"minute_cron", "last_minute_cron"} & set(getattr(item, "fixturenames", ())) else 1


@contextlib.asynccontextmanager
async def system_in(folder: pathlib.Path, receiver: Receiver, **environment: str) -> AsyncIterator[System]:
    """A system of one's own, for tests that kill or throttle it."""
    async with running_stack(folder, environment=environment) as stack, client_session() as session:
        components.note_system(stack.settings.data_dir)
        yield System(stack, Rest(session, stack.url, stack.api_key), receiver)


def client_session() -> aiohttp.ClientSession:
    """Sessions for REST."""
    return aiohttp.ClientSession(timeout=CLIENT_TIMEOUT, connector=aiohttp.TCPConnector(limit=200))


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """Where deliveries go."""
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """The system that most tests share."""
    async with system_in(tmp_path_factory.mktemp("system") / "data", receiver) as system:
        yield system


@pytest.fixture
def rest(system: System) -> Rest:
    """REST with the first key: namespace `default`, all scopes."""
    return system.rest


@pytest.fixture(scope="session")
async def minute_cron(system: System) -> Json:
    """A cron job of every minute; made before most tests run, so that the one that waits for its tick hardly waits."""
    return await system.cron(await system.endpoint(), **EVERY_MINUTE)


@pytest.fixture(scope="session")
async def last_minute_cron(system: System) -> Json:
    """A cron job of every minute that ends right after its first tick; made early for the same reason."""
    endpoint = await system.endpoint()
    next_run_at = (await system.rest.post("/cron/preview", EVERY_MINUTE))["items"][0]["run_at"]
    ends_at = (instant(next_run_at) + timedelta(seconds=1)).isoformat()
    return await system.cron(endpoint, **EVERY_MINUTE, ends_at=ends_at)


@pytest.fixture
def make_key(system: System) -> MakeKey:
    """Makes a key, in a namespace of its own unless told otherwise, and answers a REST client that uses it."""

    async def make(namespace: str | None = None, *scopes: str) -> Rest:
        return await make_key_in(system, namespace or fresh("namespace"), *scopes)

    return make


async def make_key_in(system: System, namespace: str, *scopes: str) -> Rest:
    """REST with a new key of a namespace; all scopes unless some are named."""
    key = generate_key()
    wanted = [Scope(scope) for scope in scopes] or list(Scope)
    database = Database(system.stack.database_url, pool_size=1, application_name="tests")
    await database.open()
    try:
        await write_key(database, key, namespace, "test", wanted)
    finally:
        await database.close()
    return system.rest.as_key(key)


@pytest.fixture(scope="session")
async def channel(system: System) -> AsyncIterator[grpc.aio.Channel]:
    """gRPC on the gateway's port."""
    async with grpc.aio.insecure_channel(system.stack.url.removeprefix("http://")) as channel:
        yield channel


@pytest.fixture
async def database(system: System) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection to the system's database, for tests that turn its clock or look behind the contract."""
    async with await psycopg.AsyncConnection.connect(system.stack.database_url, autocommit=True) as connection:
        yield connection
