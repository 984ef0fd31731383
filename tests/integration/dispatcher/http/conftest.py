"""A transport for the tests of HTTP deliveries, closed after each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.http import HttpTransport
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, a_request, a_transport, an_identity

Deliver = Callable[..., Awaitable[Outcome]]


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    """May reach this machine."""
    made = a_transport()
    yield made
    await made.close()


@pytest.fixture
def deliver(transport: HttpTransport) -> Deliver:
    """Delivers to a URL; keywords change the request, `timeout_ms` and `attempt` the rest."""

    async def send(url: str, *, timeout_ms: int = PATIENCE_MS, attempt: int = 1, **changes: Any) -> Outcome:
        return await transport.deliver(a_request(url, **changes), an_identity(attempt), timeout_ms)

    return send
