"""A secret leaves the system to its receiver and to nobody else, even when the receiver sends it back."""

from __future__ import annotations

import base64
import html
import json
import pathlib
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.e2e.conftest import client_session
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, retries
from tests.support.receiver import Answer

pytestmark = pytest.mark.e2e

SECRET = 'pa55 w/rd+"§x=??>>~~' + fresh("hush")
FORMS = {
    "as it is": SECRET,
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "URL-safe base64": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "inside base64": base64.b64encode(b"Bearer " + SECRET.encode() + b"\n").decode(),
    "percent-encoded": urllib.parse.quote(SECRET, safe=""),
    "form-encoded": urllib.parse.quote_plus(SECRET),
    "encoded as Python does": urllib.parse.quote(SECRET),
    "encoded in lower case": re.sub("%..", lambda escape: escape.group().lower(), urllib.parse.quote(SECRET, safe="")),
    "in JSON": json.dumps(SECRET)[1:-1],
    "in HTML": html.escape(SECRET),
}


@pytest.fixture(scope="module")
async def secret(system: System) -> str:
    """The name of the secret."""
    name = fresh("secret")
    await system.rest.create("/secrets", {"name": name, "value": SECRET})
    return name


def found_in(text: str) -> list[str]:
    """The forms of the secret that a text shows, also where the text is JSON and escapes them."""
    return [form for form, value in FORMS.items() if value in text or json.dumps(value)[1:-1] in text]


async def told(system: System, execution: Json) -> str:
    """All that the API says about an execution."""
    target = f"/executions/{execution['execution_id']}"
    parts = [await system.rest.call("GET", target + part) for part in ("", "/attempts", "/logs")]
    return "".join(part.text for part in parts)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [200, 500])
async def test_an_echoed_secret_is_masked(system: System, secret: str, form: str, status: int) -> None:
    endpoint = await system.endpoint(body_template={"token": f"{{{{secret.{secret}}}}}"}, retry_policy=retries(2, 10))
    system.receiver.script(f"/{endpoint}", Answer(status, f"you sent {FORMS[form]}, thanks".encode()))
    execution = await system.run(endpoint)
    assert system.receiver.requests(f"/{endpoint}")[0].json == {"token": SECRET}
    assert found_in(await told(system, execution)) == []
    assert execution["output"]["body"].startswith("you sent ")
    assert execution["output"]["body"].endswith(", thanks")


async def test_a_receiver_that_echoes_everything_reveals_nothing(system: System, secret: str) -> None:
    placeholder = f"{{{{secret.{secret}}}}}"
    endpoint = await system.endpoint(body_template={"deep": [placeholder, f"x{placeholder}y"]})
    system.receiver.script(f"/{endpoint}", Answer(200, lambda received: received.body))
    execution = await system.run(endpoint)
    assert execution["status"] == "SUCCESS"
    assert found_in(await told(system, execution)) == []


async def test_a_secret_in_a_binary_answer_is_masked(system: System, secret: str) -> None:
    """Binary answers are kept as base64, where what they hold is written in three ways, depending on its place."""
    endpoint = await system.endpoint(body_template=f"{{{{secret.{secret}}}}}")
    for before in (b"\xff", b"\xff\xff", b"\xff\xff\xff"):
        system.receiver.script(f"/{endpoint}", Answer(200, before + SECRET.encode() + b"after"))
        execution = await system.run(endpoint)
        assert execution["output"]["body_encoding"] == "base64"
        kept = base64.b64encode(before + SECRET.encode() + b"after").decode()
        middle = kept[len(kept) // 2 - 6 : len(kept) // 2 + 6]
        assert middle not in await told(system, execution)


async def test_a_secret_in_a_url_that_fails_is_masked(system: System, rest: Rest) -> None:
    name, value = fresh("secret"), "hush" + fresh("host").replace("-", "")
    await rest.create("/secrets", {"name": name, "value": value})
    placeholder = f"{{{{secret.{name}}}}}"
    for url in (f"http://{placeholder}.invalid/", f"http://127.0.0.1:1/{placeholder}"):
        execution = await system.run(await system.endpoint(url=url, retry_policy=retries(2, 10)))
        assert execution["status"] == "FAILED"
        assert value not in await told(system, execution)


async def test_a_secret_that_makes_a_request_invalid_is_not_in_the_error(system: System, rest: Rest) -> None:
    name, value = fresh("secret"), "line\nbreak" + fresh("hush")
    await rest.create("/secrets", {"name": name, "value": value})
    execution = await system.run(await system.endpoint(headers={"X-A": f"{{{{secret.{name}}}}}"}))
    assert (execution["status"], execution["error"]["type"]) == ("FAILED", "INVALID_DESTINATION")
    assert value.partition("\n")[2] not in await told(system, execution)


async def test_previews_and_tests_show_no_secret(system: System, rest: Rest, secret: str) -> None:
    placeholder = f"{{{{secret.{secret}}}}}"
    endpoint = await system.endpoint(body_template={"token": placeholder, "text": f"a {placeholder} b"})
    system.receiver.script(f"/{endpoint}", Answer(200, lambda received: received.body))
    rendered = await rest.call("POST", f"/endpoints/{endpoint}/render", {"input": {}})
    tested = await rest.call("POST", f"/endpoints/{endpoint}/test", {"input": {}})
    assert (rendered.status, tested.status) == (200, 200)
    assert system.receiver.requests(f"/{endpoint}")[0].json == {"token": SECRET, "text": f"a {SECRET} b"}
    assert found_in(rendered.text) == found_in(tested.text) == []


async def test_no_answer_about_secrets_has_a_value(rest: Rest, secret: str) -> None:
    answers = [
        await rest.call("GET", f"/secrets/{secret}"),
        await rest.call("GET", "/secrets?limit=200"),
        await rest.call("PUT", f"/secrets/{secret}", {"value": SECRET}),
        await rest.call("POST", "/secrets", {"name": secret, "value": SECRET}),
    ]
    assert [answer.status for answer in answers] == [200, 200, 200, 409]
    assert [found_in(answer.text) for answer in answers] == [[], [], [], []]


async def test_the_database_holds_no_secret_in_the_clear(system: System, secret: str) -> None:
    async with await psycopg.AsyncConnection.connect(system.stack.database_url) as database:
        tables = await rows(database, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        for (table,) in tables:
            for row in await rows(database, f"SELECT t::text, to_jsonb(t)::text FROM {table} AS t"):
                assert found_in("".join(row)) == [], table
        (encrypted,) = await rows(database, "SELECT encrypted_value FROM secrets WHERE name = %s", secret)
    assert SECRET.encode() not in bytes(encrypted[0])


async def rows(database: psycopg.AsyncConnection[Any], statement: Any, *values: Any) -> list[tuple[Any, ...]]:
    return await (await database.execute(statement, values)).fetchall()


def log_files(system: System) -> Iterator[pathlib.Path]:
    yield from (system.stack.settings.data_dir / "logs").iterdir()


@pytest.mark.slow  # that is to say, last: when all has been written that could be
async def test_no_log_and_no_metric_shows_a_secret_or_a_key(system: System, secret: str) -> None:
    await system.run(await system.endpoint(body_template=f"{{{{secret.{secret}}}}}"))
    facts = json.loads((system.stack.settings.data_dir / "run.json").read_text())
    texts = {path.name: path.read_text(errors="replace") for path in log_files(system)}
    assert {"api.log", "scheduler.log", "dispatcher.log", "envoy.log", "postgres.log"} <= texts.keys()
    for name, url in facts["metrics"].items():
        async with client_session() as session, session.get(url) as answer:
            texts[f"metrics of {name}"] = await answer.text()
    for name, text in texts.items():
        assert found_in(text) == [], name
        assert system.rest.key.rpartition("_")[2] not in text, name
