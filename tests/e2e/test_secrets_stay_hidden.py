"""A secret leaves the system to its receiver and to nobody else, even when the receiver sends it back."""

from __future__ import annotations

import base64
import html
import json
import pathlib
import re
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc.aio
import psycopg
import pytest

from tests.e2e.calls import METHODS, grpc_error
from tests.e2e.conftest import client_session, system_in
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, retries
from tests.support.receiver import Answer, Receiver

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


_others: list[str] = []
"""Values of further secrets, which are searched for as they are."""


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """A system of these tests' own, whose services log all that they have to say."""
    async with system_in(tmp_path_factory.mktemp("hidden") / "data", receiver, TE_LOG_LEVEL="DEBUG") as system:
        yield system


@pytest.fixture(scope="module")
async def secret(system: System) -> str:
    """The name of the secret."""
    name = fresh("secret")
    await system.rest.create("/secrets", {"name": name, "value": SECRET})
    return name


@pytest.fixture
async def channel_of_ours(system: System) -> AsyncIterator[grpc.aio.Channel]:
    """gRPC on the gateway of this system."""
    async with grpc.aio.insecure_channel(system.stack.url.removeprefix("http://")) as channel:
        yield channel


def found_in(text: str) -> list[str]:
    """The forms of the secret that a text shows, also where the text is JSON and escapes them."""
    found = [form for form, value in FORMS.items() if value in text or json.dumps(value)[1:-1] in text]
    return found + [value for value in _others if value in text]


async def another_secret(rest: Rest, value: str) -> str:
    """A placeholder for a secret that is searched for, too."""
    name = fresh("secret")
    _others.append(value)
    await rest.create("/secrets", {"name": name, "value": value})
    return f"{{{{secret.{name}}}}}"


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
    placeholder = await another_secret(rest, "hush" + fresh("host").replace("-", ""))
    for url in (f"http://{placeholder}.invalid/", f"http://127.0.0.1:1/{placeholder}"):
        execution = await system.run(await system.endpoint(url=url, retry_policy=retries(2, 10)))
        assert execution["status"] == "FAILED"
        assert found_in(await told(system, execution)) == []


async def test_a_secret_in_the_address_of_a_broker_or_a_redis_is_masked(system: System, rest: Rest) -> None:
    password = await another_secret(rest, fresh("hushpassword"))
    host = await another_secret(rest, "hush" + fresh("broker").replace("-", ""))
    nowhere = "127.0.0.1:1"
    fields, record = {"fields_template": {"a": "b"}, "stream": "s"}, {"value_template": {"a": password}, "topic": "t"}
    for endpoint_type, spec in (
        ("REDIS_STREAM", {"redis_url": f"redis://:{password}@{nowhere}/0", **fields}),
        ("REDIS_STREAM", {"redis_url": f"redis://{host}.invalid:1/0", **fields}),
        ("REDIS_STREAM", {"redis_url": f"redis://r:1/{password}", **fields}),
        ("KAFKA", {"bootstrap_servers": f"{host}.invalid:1", **record}),
        ("KAFKA", {"bootstrap_servers": f"user:{password}@{nowhere}", **record}),
        ("KAFKA", {"bootstrap_servers": nowhere, **record}),
    ):
        name = fresh("endpoint")
        spec = {**spec, "timeout_ms": 300}
        policy = retries(1)
        await rest.create("/endpoints", {"name": name, "type": endpoint_type, "spec": spec, "retry_policy": policy})
        execution = await system.run(name)
        assert execution["status"] == "FAILED", spec
        assert found_in(await told(system, execution)) == [], spec


async def test_a_secret_that_makes_a_message_too_large_is_not_in_the_error(system: System, rest: Rest) -> None:
    placeholder = await another_secret(rest, fresh("hush") * 1000)
    _others.append(_others[-1][:20])
    endpoint = await system.endpoint(body_template=[placeholder] * 900)
    execution = await system.run(endpoint)
    assert (execution["status"], execution["error"]["type"]) == ("FAILED", "INVALID_DESTINATION")
    assert execution["attempt_count"] == 1
    assert "more than 1024 KiB" in execution["error"]["message"]
    assert found_in(await told(system, execution)) == []


@pytest.mark.parametrize(
    "body",
    [
        {"name": "Not A Name", "value": SECRET},
        {"name": "x" * 200, "value": SECRET},
        {"name": fresh("secret"), "value": {"deep": SECRET}},
        {"name": fresh("secret"), "value": [SECRET]},
        {"name": {"x": 1}, "value": SECRET},
        {"name": fresh("secret"), "value": SECRET + "\0"},
        {"name": fresh("secret"), "value": SECRET * 10_000},
    ],
    ids=["name", "long name", "object", "list", "no text for a name", "NUL", "too long"],
)
async def test_a_refusal_of_a_secret_does_not_repeat_it(system: System, rest: Rest, body: Json) -> None:
    for method, target in (("POST", "/secrets"), ("PUT", "/secrets/nobody")):
        answered = await rest.call(method, target, body)
        assert 400 <= answered.status < 500
        assert found_in(answered.text) == []
        assert SECRET[:12] not in answered.text


async def test_damaged_json_with_a_secret_in_it_is_not_repeated(rest: Rest) -> None:
    whole = json.dumps({"name": "x", "value": SECRET}, ensure_ascii=False).encode()
    for raw in (whole[:-1], whole[:-2], whole + b"}", whole.replace(b'"name"', b"name"), b"\xff" + whole):
        answered = await rest.call("POST", "/secrets", raw=raw)
        assert answered.status in (201, 400, 409), "some damage is forgiven"
        assert found_in(answered.text) == []


async def test_no_error_over_grpc_repeats_a_secret(
    system: System, channel_of_ours: grpc.aio.Channel, secret: str
) -> None:
    for name, request in (
        ("SecretService.CreateSecret", {"name": secret, "value": SECRET}),
        ("SecretService.CreateSecret", {"name": "Not A Name", "value": SECRET}),
        ("SecretService.UpdateSecret", {"name": "nobody", "value": SECRET}),
    ):
        assert name in METHODS
        error = await grpc_error(channel_of_ours, system.rest.key, name, request)
        assert found_in(repr(error)) == []


async def test_a_secret_that_makes_a_request_invalid_is_not_in_the_error(system: System, rest: Rest) -> None:
    after = "break" + fresh("hush")
    placeholder = await another_secret(rest, f"line\n{after}")
    _others.append(after)
    execution = await system.run(await system.endpoint(headers={"X-A": placeholder}))
    assert (execution["status"], execution["error"]["type"]) == ("FAILED", "INVALID_DESTINATION")
    assert found_in(await told(system, execution)) == []


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


@pytest.mark.slow
async def test_no_list_shows_a_secret(rest: Rest, secret: str) -> None:
    jobs = [f"/jobs/{job['job_id']}/executions" for job in (await rest.items("/jobs?limit=200"))[:20]]
    for target in ("/secrets", "/endpoints", "/jobs", "/configs", "/payload-specs", "/api-keys", *jobs):
        answered = await rest.call("GET", f"{target}?limit=100")
        assert answered.status == 200
        assert found_in(answered.text) == [], target
        assert rest.key.rpartition("_")[2] not in answered.text, target


@pytest.mark.slow  # that is to say, last: when all has been written that could be
async def test_the_database_holds_no_secret_in_the_clear(system: System, secret: str) -> None:
    async with await psycopg.AsyncConnection.connect(system.stack.database_url) as database:
        tables = await rows(database, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        assert {"attempts", "executions", "execution_logs", "jobs", "api_keys"} <= {table for (table,) in tables}
        for (table,) in tables:
            for row in await rows(database, f"SELECT t::text, to_jsonb(t)::text FROM {table} AS t"):
                assert found_in("".join(row)) == [], table
                assert system.rest.key.rpartition("_")[2] not in "".join(row), table
        (encrypted,) = await rows(database, "SELECT encrypted_value FROM secrets WHERE name = %s", secret)
    assert SECRET.encode() not in bytes(encrypted[0])


async def rows(database: psycopg.AsyncConnection[Any], statement: Any, *values: Any) -> list[tuple[Any, ...]]:
    return await (await database.execute(statement, values)).fetchall()


def log_files(system: System) -> Iterator[pathlib.Path]:
    yield from (system.stack.settings.data_dir / "logs").iterdir()


@pytest.mark.slow
async def test_no_log_and_no_metric_shows_a_secret_or_a_key(system: System, secret: str) -> None:
    await system.run(await system.endpoint(body_template=f"{{{{secret.{secret}}}}}"))
    facts = json.loads((system.stack.settings.data_dir / "run.json").read_text())
    texts = {path.name: path.read_text(errors="replace") for path in log_files(system)}
    assert {"api.log", "scheduler.log", "dispatcher.log", "envoy.log", "postgres.log"} <= texts.keys()
    assert "debug" in texts["api.log"].lower(), "all that there is to say has been said"
    for name, url in facts["metrics"].items():
        async with client_session() as session, session.get(url) as answer:
            texts[f"metrics of {name}"] = await answer.text()
    for name, text in texts.items():
        assert found_in(text) == [], name
        assert system.rest.key.rpartition("_")[2] not in text, name
