"""Both clients send the same requests, to the letter."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.integration.dispatcher.http.deliveries import CLIENTS, PATIENCE_MS, a_request, a_transport, an_identity
from tests.integration.dispatcher.http.receivers import Connection, receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TIMES = re.compile(rb"webhook-timestamp: \d+|webhook-signature: v1,\S+")


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("/", {}),
        ("/a%2Fb?x=1#part", {"method": "GET", "body": None}),
        ("/straße?q=ü c+d", {"method": "GET", "body": None}),
        ("?q=1", {"method": "DELETE", "body": None}),
        ("", {"body": None}),
        ("/", {"body": b""}),
        ("/", {"method": "PUT", "body": b"x" * 300_000}),
        ("/", {"method": "PATCH", "signing_secret": SECRET, "headers": ()}),
        ("/", {"headers": (("Accept", "text/plain"), ("X-Empty", ""), ("X-Text", "ü\tz"), ("Cookie", "a=b"))}),
        ("/", {"headers": (("Authorization", "Bearer t"), ("accept-encoding", "gzip"), ("Host", "other"))}),
    ],
)
@pytest.mark.parametrize("user", ["", "al%40ice:s%3Acret@", "alice@"])
async def test_the_requests_of_both_clients_are_the_same(path: str, changes: dict[str, Any], user: str) -> None:
    async def script(connection: Connection) -> None:
        head = await connection.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        heads.append(TIMES.sub(b"", head + await connection.reader.readexactly(int(length[1]) if length else 0)))
        await connection.answer()

    heads: list[bytes] = []
    outcomes = []
    async with receiving(script) as receiver:
        url = f"http://{user}127.0.0.1:{receiver.port}{path}"
        for client in CLIENTS:
            transport = a_transport(client)
            outcomes.append(await transport.deliver(a_request(url, **changes), an_identity(), PATIENCE_MS))
            await transport.close()
    assert len(set(heads)) <= 1
    assert outcomes[0] == outcomes[1]
    assert len(heads) == 2 * outcomes[0].succeeded
