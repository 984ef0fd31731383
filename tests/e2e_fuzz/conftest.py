"""A system of their own for the tests of this folder: they leave thousands of odd things behind."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import version

import pytest
import requests
from _pytest.nodeid import coerce_node_id

from taskexecutor_local.stack import Stack, running_stack
from tests.e2e_fuzz.surface import Surface
from tests.support import components
from tests.support.receiver import Receiver, running_receiver


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is in this folder, and gives each test of an operation an id of its own: pytest leaves out what
    schemathesis adds to the name."""
    here = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("e2e")
            item._id = coerce_node_id(f"{item.nodeid.rpartition('::')[0]}::{item.name}")


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """Where all deliveries go."""
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """What `make run` starts."""
    async with running_stack(tmp_path_factory.mktemp("fuzz") / "data") as stack:
        components.note("schemathesis", version("schemathesis"))
        yield stack


@pytest.fixture(scope="package")
def surface(stack: Stack, receiver: Receiver) -> Iterator[Surface]:
    """The REST surface with something in it."""
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {stack.api_key}"
        surface = Surface(stack.url, session, receiver)
        surface.settle()
        yield surface
