"""A system of their own for the tests of this folder that need one: a new namespace for each example, and odd requests."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import psycopg
import pytest
import requests

from taskexecutor_common.api_keys import generate_key
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.store.admin import write_key
from taskexecutor_common.store.database import Database
from taskexecutor_local.stack import Stack, running_stack
from tests.fuzz.conversation import Conversation
from tests.fuzz.world import World
from tests.support import components
from tests.support.receiver import Receiver, running_receiver

# Time is turned behind the scheduler's back, so nothing tells it to look.
_ENVIRONMENT = {"TE_CRON_TICK_INTERVAL_SEC": "0.1"}


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """Where all deliveries go."""
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package")
async def stack(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[Stack]:
    """What `make run` starts. It is stopped before the receiver, so that no connection is left there."""
    async with running_stack(tmp_path_factory.mktemp("fuzz") / "data", environment=_ENVIRONMENT) as stack:
        components.note("hypothesis", version("hypothesis"))
        yield stack


@pytest.fixture(scope="package")
def session() -> Iterator[requests.Session]:
    """Connections that are kept between calls."""
    with requests.Session() as session:
        yield session


@pytest.fixture(scope="package")
def new_world(stack: Stack, receiver: Receiver, session: requests.Session) -> Iterator[Callable[[], World]]:
    """Makes namespaces that nobody has used."""
    numbers = itertools.count()
    with psycopg.connect(stack.database_url, autocommit=True) as database, ThreadPoolExecutor(1) as aside:

        def make() -> World:
            namespace, key = f"fuzz-{next(numbers)}", generate_key()
            aside.submit(asyncio.run, _write_key(stack.database_url, key, namespace)).result()
            return World(Conversation(session, stack.url, key), receiver, f"/{namespace}", database)

        yield make


async def _write_key(database_url: str, key: str, namespace: str) -> None:
    database = Database(database_url, pool_size=1, application_name="tests")
    await database.open()
    try:
        await write_key(database, key, namespace, "fuzz", list(Scope))
    finally:
        await database.close()
