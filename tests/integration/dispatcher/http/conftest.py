"""Transports for the tests of HTTP deliveries, one test for each client, closed after each.

A test that asks for `transport`, `make_transport` or `deliver` runs with every client; what they may differ in is
said where it is tested. The tests run on uvloop, as the dispatcher does: asyncio's own loop hides some orders of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvloop

from taskexecutor_dispatcher.endpoints.base import Outcome
from tests.integration.dispatcher.http.deliveries import (
    CLIENTS,
    PATIENCE_MS,
    HttpClient,
    MakeTransport,
    a_request,
    a_transport,
    an_identity,
)

Deliver = Callable[..., Awaitable[Outcome]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What makes the loops of the tests in this folder."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the tests of this folder loops of their own, one a file, since those of others run on another kind."""
    for item in items:
        if item.path.parent == Path(__file__).parent and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Which client sends: a value of TE_HTTP_CLIENT."""
    name: str = request.param
    return name


@pytest_asyncio.fixture(loop_scope="module")
async def make_transport(client: str) -> AsyncIterator[MakeTransport]:
    """Makes transports that may reach this machine unless they are told otherwise."""
    made: list[HttpClient] = []

    def make(allow: str = "loopback", **settings: Any) -> HttpClient:
        made.append(a_transport(client, allow, **settings))
        return made[-1]

    yield make
    for transport in made:
        await transport.close()


@pytest_asyncio.fixture(loop_scope="module")
async def transport(make_transport: MakeTransport) -> HttpClient:
    """May reach this machine."""
    return make_transport()


@pytest.fixture
def deliver(transport: HttpClient) -> Deliver:
    """Delivers to a URL; keywords change the request, `timeout_ms` and `attempt` the rest."""

    async def send(url: str, *, timeout_ms: int = PATIENCE_MS, attempt: int = 1, **changes: Any) -> Outcome:
        return await transport.deliver(a_request(url, **changes), an_identity(attempt), timeout_ms)

    return send
