"""A REST client for tests: it sends what it is told to, bad things too, and shows status, headers and JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

Json = dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Json:
        """The body as JSON."""
        return dict(json.loads(self.text))

    @property
    def items(self) -> list[Json]:
        """The rows of a list."""
        return list(self.json["items"])

    @property
    def code(self) -> str:
        """The code of an error; the body is checked for the brief's shape besides."""
        error = self.json["error"]
        assert list(self.json) == ["error"], self.text
        assert sorted(error) == ["code", "message", "request_id"], self.text
        assert error["request_id"] == self.headers["x-request-id"]
        return str(error["code"])

    @property
    def message(self) -> str:
        """The message of an error."""
        return str(self.json["error"]["message"])


class Rest:
    """Calls one gateway with one key."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str) -> None:
        self._session = session
        self.url = url
        self.key = key

    def as_key(self, key: str) -> Rest:
        """The same gateway, another key."""
        return Rest(self._session, self.url, key)

    async def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """One request. `target` is sent as it is; `raw` replaces the JSON of `body`; a header set to "" is not sent."""
        sent = {"authorization": f"Bearer {self.key}", "content-type": "application/json"} | dict(headers or {})
        content = raw if raw is not None or body is None else json.dumps(body).encode()
        async with self._session.request(
            method,
            URL(self.url + target, encoded=True),
            data=None if content is None else io.BytesIO(content),
            headers={name: value for name, value in sent.items() if value},
            allow_redirects=False,
        ) as answer:
            return Answered(answer.status, answer.headers.copy(), await answer.text())

    async def create(self, target: str, body: Json) -> Json:
        """POST of something new: 201."""
        return _json_of(await self.call("POST", target, body), 201)

    async def post(self, target: str, body: Json | None = None) -> Json:
        """POST that creates nothing: 200."""
        return _json_of(await self.call("POST", target, body), 200)

    async def get(self, target: str) -> Json:
        """GET: 200."""
        return _json_of(await self.call("GET", target), 200)

    async def put(self, target: str, body: Json) -> Json:
        """PUT: 200."""
        return _json_of(await self.call("PUT", target, body), 200)

    async def delete(self, target: str) -> None:
        """DELETE: 204 without a body."""
        answered = await self.call("DELETE", target)
        assert (answered.status, answered.text) == (204, ""), answered

    async def items(self, target: str) -> list[Json]:
        """The rows of a list's page."""
        return list((await self.get(target))["items"])


def _json_of(answered: Answered, status: int) -> Json:
    assert answered.status == status, f"{answered.status} instead of {status}: {answered.text}"
    return answered.json
