"""Looking at what an endpoint would send, and sending it once, outside any job."""

from __future__ import annotations

import pytest

from tests.e2e.rest import Rest
from tests.e2e.system import System, fresh, retries
from tests.support.receiver import Answer

pytestmark = pytest.mark.e2e

MASK = "***"


async def make_endpoint(system: System) -> str:
    """One that uses input, config and secret in every place."""
    config, secret = fresh("config"), fresh("secret")
    await system.rest.create("/configs", {"name": config, "values": {"base": system.receiver.url(""), "n": 7}})
    await system.rest.create("/secrets", {"name": secret, "value": "a secret value"})
    return await system.endpoint(
        config=config,
        url="{{config.base}}/orders/{{input.id}}",
        headers={"Authorization": f"Bearer {{{{secret.{secret}}}}}"},
        body_template={"n": "{{config.n}}", "who": "{{input.who}}", "job": "{{job.version}}"},
        retry_policy=retries(3, 10),
    )


async def test_a_rendering_shows_the_request_and_sends_nothing(system: System, rest: Rest) -> None:
    endpoint = await make_endpoint(system)
    order = fresh("order")
    shown = await rest.post(f"/endpoints/{endpoint}/render", {"input": {"id": order, "who": "ä b"}})
    assert (shown["type"], shown["revision"]) == ("HTTP", 1)
    rendered = shown["rendered"]
    assert (rendered["method"], rendered["url"]) == ("POST", system.receiver.url(f"/orders/{order}"))
    assert rendered["body"] == {"n": 7, "who": "ä b", "job": 1}
    assert rendered["headers"]["Authorization"] == f"Bearer {MASK}"
    assert system.receiver.requests(f"/orders/{order}") == []
    assert await rest.items(f"/jobs?endpoint={endpoint}") == []


async def test_a_test_sends_once_and_shows_the_answer(system: System, rest: Rest) -> None:
    endpoint = await make_endpoint(system)
    order = fresh("order")
    system.receiver.script(f"/orders/{order}", Answer(201, b"made", delay_sec=0.05))
    shown = await rest.post(f"/endpoints/{endpoint}/test", {"input": {"id": order, "who": "me"}})
    assert (shown["status"], shown["output"]) == ("SUCCESS", {"status_code": 201, "body": "made"})
    assert shown["rendered"]["body"] == {"n": 7, "who": "me", "job": 1}
    assert 50 <= shown["duration_ms"] < 5000
    (request,) = system.receiver.requests(f"/orders/{order}")
    assert request.headers["Authorization"] == "Bearer a secret value"
    assert request.json == {"n": 7, "who": "me", "job": 1}
    assert await rest.items(f"/jobs?endpoint={endpoint}") == []


async def test_a_test_that_fails_says_why_and_is_not_repeated(system: System, rest: Rest) -> None:
    endpoint = await make_endpoint(system)
    order = fresh("order")
    system.receiver.script(f"/orders/{order}", Answer(503, b"no"))
    shown = await rest.post(f"/endpoints/{endpoint}/test", {"input": {"id": order, "who": "me"}})
    assert (shown["status"], shown["error"]["type"], shown["error"]["status_code"]) == ("FAILED", "HTTP_ERROR", 503)
    assert shown["output"]["body"] == "no"
    assert len(system.receiver.requests(f"/orders/{order}")) == 1


@pytest.mark.parametrize("action", ["render", "test"])
async def test_an_update_is_seen_at_once(system: System, rest: Rest, action: str) -> None:
    endpoint = await system.endpoint(body_template=["old"])
    await rest.put(
        f"/endpoints/{endpoint}",
        {"spec": {"url": system.receiver.url(f"/{endpoint}"), "method": "PUT", "body_template": ["new"]}},
    )
    shown = await rest.post(f"/endpoints/{endpoint}/{action}", {})
    assert (shown["rendered"]["method"], shown["rendered"]["body"]) == ("PUT", ["new"])
