"""Cursors: what was written is read again, by the list and filter that wrote it, and by nobody else, whatever comes."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote
from uuid import UUID

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taskexecutor_api import pages
from taskexecutor_common.errors import InvalidRequest
from tests.fuzz.bounds import bounded
from tests.fuzz.conversation import Json, expect
from tests.fuzz.json_values import plain_values, texts
from tests.fuzz.trying import attempt
from tests.fuzz.world import World

LISTS = ("jobs", "configs", "job-versions")
filters = st.lists(st.none() | st.sampled_from(["default", "CRON", "ACTIVE"]) | texts | st.uuids(), max_size=4)
keys = st.lists(st.datetimes(timezones=st.timezones()) | st.uuids() | texts | st.integers(0, 2**31), max_size=3)
foreign_texts = (
    st.text(max_size=80)
    | st.text("ABCabc019-_=+/", max_size=80)
    | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="))
)


def request(cursor: str | None) -> Any:
    """A list request, as far as cursors are concerned."""
    return SimpleNamespace(cursor=cursor, HasField=lambda name: cursor is not None)


def read(cursor: str | None, list_name: str, chosen: list[Any], parts: int) -> tuple[Any, ...] | None:
    return pages.read_cursor(request(cursor), list_name, chosen, *[lambda part: part] * parts)


def is_refused(cursor: str, list_name: str, chosen: list[Any], parts: int) -> bool:
    _, error = attempt(lambda: read(cursor, list_name, chosen, parts), InvalidRequest)
    return error is not None and error.field == "cursor"


@bounded(40)
@given(st.sampled_from(LISTS), filters, keys)
def test_what_was_written_is_read_again(list_name: str, chosen: list[Any], key: list[Any]) -> None:
    cursor = pages.write_cursor(list_name, chosen, key)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", cursor)
    written = orjson.loads(orjson.dumps(key, option=orjson.OPT_UTC_Z))
    assert read(cursor, list_name, chosen, len(key)) == tuple(written)
    assert read(None, list_name, chosen, len(key)) is None


@bounded(40)
@given(st.tuples(st.sampled_from(LISTS), filters), st.tuples(st.sampled_from(LISTS), filters), keys)
def test_no_other_list_or_filter_takes_it(
    one: tuple[str, list[Any]], other: tuple[str, list[Any]], key: list[Any]
) -> None:
    assume(orjson.dumps(one) != orjson.dumps(other))
    assert is_refused(pages.write_cursor(*one, key), *other, len(key))


@bounded(60)
@given(st.sampled_from(LISTS), filters, keys, st.data())
def test_a_changed_one_is_refused(list_name: str, chosen: list[Any], key: list[Any], data: Any) -> None:
    cursor = pages.write_cursor(list_name, chosen, key)
    place = data.draw(st.integers(0, len(cursor) - 1))
    instead = data.draw(st.text(max_size=2))
    changed = cursor[:place] + instead + cursor[place + data.draw(st.integers(0, 2)) :]
    assume(changed != cursor)
    assert is_refused(changed, list_name, chosen, len(key))


@bounded(60)
@given(foreign_texts, st.integers(0, 2))
def test_any_text_is_refused(text: str, parts: int) -> None:
    assert is_refused(text, "jobs", ["default", None, None, None], parts)


# --- the lists themselves ---

NEVER = "2199-01-01T00:00:00Z"
SHOT: Json = {"endpoint": "it", "trigger": "DELAYED", "idempotency_key": "k", "run_at": NEVER}
CRON: Json = {"endpoint": "it", "trigger": "CRON", "cron": "0 0 1 1 *", "timezone": "UTC"}


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    """A namespace of its own."""
    return new_world()


@pytest.fixture
def lists(world: World) -> dict[str, tuple[str, list[Any]]]:
    """Each list there is, by its path: its name, and what its cursors are bound to."""

    def create(target: str, body: Json) -> Json:
        answered = world.talk.call("POST", target, body)
        assert answered.status == 201, answered
        return answered.json

    def stored_id(column: str, table: str) -> UUID:
        found = world.database.execute(f"SELECT {column} FROM {table} WHERE namespace = %s", (namespace,)).fetchone()
        assert found is not None
        return UUID(str(found[0]))

    namespace = world.root.removeprefix("/")
    create("/configs", {"name": "it", "values": {}})
    create("/endpoints", {"name": "it", "type": "HTTP", "spec": {"url": world.url, "method": "POST"}})
    shot = create("/jobs", SHOT)["execution"]["execution_id"]
    cron = create("/jobs", CRON)["job_id"]
    shot_id, cron_id = (UUID(hex=text.partition("_")[2]) for text in (shot, cron))
    return {
        "/payload-specs": ("payload-specs", [namespace]),
        "/configs": ("configs", [namespace]),
        "/secrets": ("secrets", [namespace]),
        "/api-keys": ("api-keys", [namespace]),
        "/endpoints": ("endpoints", [namespace, None]),
        "/jobs": ("jobs", [namespace, None, None, None]),
        "/configs/it/revisions": ("config-revisions", [namespace, stored_id("config_id", "configs")]),
        "/endpoints/it/revisions": ("endpoint-revisions", [namespace, stored_id("endpoint_id", "endpoints")]),
        f"/jobs/{cron}/versions": ("job-versions", [namespace, cron_id]),
        f"/jobs/{cron}/executions": ("job-executions", [namespace, cron_id, None]),
        f"/executions/{shot}/attempts": ("attempts", [namespace, shot_id]),
        f"/executions/{shot}/logs": ("logs", [namespace, shot_id]),
    }


@pytest.mark.e2e
@bounded(40)
@given(text=foreign_texts.filter(bool), which=st.integers(0, 11))
def test_every_list_refuses_any_text(
    world: World, lists: dict[str, tuple[str, list[Any]]], text: str, which: int
) -> None:
    target = list(lists)[which]
    expect(world.talk.call("GET", f"{target}?cursor={quote(text, safe='')}"), (400, "INVALID_REQUEST"))


# Each list's own key is here, among much that is nearly one.
_TIME = "2026-01-01T00:00:00Z"
_nearly = st.sampled_from(
    [
        _TIME,
        "2026-01-01",
        "0001-01-01T00:00:00+14:00",
        "it",
        str(UUID(int=1)),
        "\x00",
        1,
        0,
        -1,
        2**31,
        2**63,
        1.5,
        None,
    ]
)
forged_keys = st.lists(_nearly | plain_values, max_size=3) | st.tuples(st.just(_TIME), _nearly).map(list)


@pytest.mark.e2e
@bounded(60)
@given(key=forged_keys, which=st.integers(0, 11))
def test_a_forged_one_is_refused_or_names_a_place_in_the_list(
    world: World, lists: dict[str, tuple[str, list[Any]]], key: list[Any], which: int
) -> None:
    """The checksum is no secret: whoever knows how it is made can have a cursor of any content."""
    target, bound = list(lists.items())[which]
    expect(
        world.talk.call("GET", f"{target}?cursor={pages.write_cursor(*bound, key)}"),
        (400, "INVALID_REQUEST"),
        (200, ""),
    )
