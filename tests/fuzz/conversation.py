"""Calls of one API key, in step: each is noted for who reads a failing example, and checked for what holds of any answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import requests
from hypothesis import currently_in_test_context, note

Json = dict[str, Any]

_TIMEOUT_SEC = 30
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Answered:
    """What came back."""

    status: int
    json: Json

    @property
    def code(self) -> str:
        """The code of an error; empty for a success."""
        return "" if self.is_success else str(self.json["error"]["code"])

    @property
    def is_success(self) -> bool:
        """2xx."""
        return self.status < 300


class Conversation:
    """REST with one key. `secrets` are texts that no answer may hold."""

    def __init__(self, session: requests.Session, url: str, key: str) -> None:
        self._session = session
        self._url = url
        self.key = key
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self.secrets: set[str] = set()
        self.asked_at = datetime.now(UTC)
        """When the last call was begun."""

    def call(self, method: str, target: str, body: Json | bytes | None = None) -> Answered:
        """One request; a body of bytes is sent as it is."""
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        self.asked_at = datetime.now(UTC)
        response = self._session.request(
            method, self._url + target, data=content, headers=self._headers, timeout=_TIMEOUT_SEC, allow_redirects=False
        )
        if currently_in_test_context():
            asked = f"{method} {target} {(content or b'').decode(errors='replace')}"
            note(f"    {asked[:_SHOWN_CHARS]}\n        {response.status_code} {response.text[:_SHOWN_CHARS]}")
        assert response.status_code < 500, response.text
        assert not any(secret in response.text for secret in self.secrets), "an answer shows a secret"
        answered = Answered(response.status_code, json.loads(response.text) if response.text else {})
        if not answered.is_success:
            assert list(answered.json) == ["error"]
            assert sorted(answered.json["error"]) == ["code", "message", "request_id"]
        return answered

    def get(self, target: str) -> Json:
        """GET of something that is there."""
        answered = self.call("GET", target)
        assert answered.status == 200, answered
        return answered.json

    def pages(self, target: str, limit: int = 200) -> list[list[Json]]:
        """All pages of a list."""
        separator = "&" if "?" in target else "?"
        page = self.get(f"{target}{separator}limit={limit}")
        found = [page["items"]]
        while "cursor" in page:
            page = self.get(f"{target}{separator}limit={limit}&cursor={page['cursor']}")
            found.append(page["items"])
        assert all(len(page) == limit for page in found[:-1])
        assert len(found[-1]) <= limit
        return found

    def items(self, target: str, limit: int = 200) -> list[Json]:
        """All rows of a list."""
        return [item for page in self.pages(target, limit) for item in page]


def expect(answered: Answered, *right: tuple[int, str]) -> None:
    """The status and code are one of these."""
    assert (answered.status, answered.code) in right, f"{answered.status} {answered.code}, right were {right}"


def expect_by(truth: bool | None, answered: Answered, if_true: tuple[int, str], if_false: tuple[int, str]) -> None:
    """The first if `truth`, the second if not, either if nobody can know."""
    right = {True: [if_true], False: [if_false], None: [if_true, if_false]}
    expect(answered, *right[truth])
