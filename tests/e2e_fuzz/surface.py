"""One live REST surface: what exists in it, and how a generated case is sent there and judged."""

from __future__ import annotations

import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import requests
import schemathesis
from schemathesis.checks import CHECKS

from tests.e2e_fuzz import document, leniency
from tests.e2e_fuzz.document import Json
from tests.support.receiver import Answer, Receiver

_ALWAYS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)
_HTTP_ORIGIN = re.compile(r"(?i)\bhttps?://[^/{}\s]*")
_EXAMPLE_ADDRESS = re.compile(r"[\w.-]+\.example:\d+")
_LOOPBACK = "127.0.0.1:1"
_DEADLINE_SEC = 10.0
_POLL_SEC = 0.02
_FAR_AWAY = "2199-01-01T00:00:00Z"
_FAILING_PATH = "/failing"


class Surface:
    """A gateway, a key, and things in the key's namespace."""

    def __init__(self, url: str, session: requests.Session, receiver: Receiver) -> None:
        self._url = url
        self._session = session
        self._receiver = receiver
        self._numbers = itertools.count()
        self._keys: dict[str, str] = {}
        self._made: dict[str, Callable[[], str]] = {
            document.FRESH_KEY_ID: self._fresh_key,
            document.CRON_JOB: self._fresh_cron_job,
            document.DELAYED_JOB: lambda: str(self._fresh_delayed_job()["job_id"]),
            document.WAITING_EXECUTION: lambda: str(self._fresh_delayed_job()["execution"]["execution_id"]),
        }
        self.statuses: defaultdict[str, set[int]] = defaultdict(set)
        """By operation, what it answered so far."""

    def settle(self) -> None:
        """Makes what the stand-ins with fixed names mean, one delivered job and one that failed."""
        self._post("/payload-specs", {"name": document.PAYLOAD_SPEC, "schema": {"type": "object"}})
        self._post("/configs", {"name": document.CONFIG, "values": {"greeting": "hello"}})
        self._post("/endpoints", self.endpoint(document.ENDPOINT))
        self._receiver.script(_FAILING_PATH, Answer(500, b"no"))
        self._post("/endpoints", self.endpoint("fuzz-failing-endpoint", _FAILING_PATH))
        for endpoint, job, execution in (
            (document.ENDPOINT, document.DONE_JOB, document.DONE_EXECUTION),
            ("fuzz-failing-endpoint", document.FAILED_JOB, document.FAILED_EXECUTION),
        ):
            made = self._post("/jobs", {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": "settled"})
            execution_id = made["execution"]["execution_id"]
            self._wait_for_end(execution_id)
            self._made[job] = lambda job_id=made["job_id"]: str(job_id)
            self._made[execution] = lambda execution_id=execution_id: str(execution_id)

    def send(self, case: schemathesis.Case) -> schemathesis.Response:
        """Sends a case, its stand-ins replaced, and remembers the status."""
        self._replace_stand_ins(case)
        response = case.call(self._url, self._session)
        self.statuses[case.operation.definition.raw["operationId"]].add(response.status_code)
        return response

    def judge(self, case: schemathesis.Case, response: schemathesis.Response) -> None:
        """Raises for an answer that is not as documented."""
        names = list(_ALWAYS)
        if not leniency.takes_more_than_documented(case):
            names.append("negative_data_rejection")
        if not leniency.refuses_for_more_than_shape(case, response):
            names.append("positive_data_acceptance")
        case.validate_response(response, checks=CHECKS.get_by_names(names))

    def key_with(self, scope: str) -> str:
        """A key that has one scope."""
        if scope not in self._keys:
            self._keys[scope] = str(self._post("/api-keys", {"name": scope, "scopes": [scope]})["key"])
        return self._keys[scope]

    def call_as(self, key: str | None, verb: str, path: str) -> requests.Response:
        """Calls with another key, or none, an empty body, and ids of things that do not exist."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        body = None if verb in ("get", "delete") else {}
        return requests.request(verb, self._url + re.sub(r"\{\w+\}", "missing", path), json=body, headers=headers)

    def _replace_stand_ins(self, case: schemathesis.Case) -> None:
        for name, value in (case.path_parameters or {}).items():
            if value == document.FRESH:
                case.path_parameters[name] = self._fresh_named("/" + case.path.split("/")[1])
            elif value in self._made:
                case.path_parameters[name] = self._made[value]()
        case.body = self._brought_home(case.body)

    def _brought_home(self, value: Any) -> Any:
        """Any JSON with all addresses in it replaced by ones on this machine: nothing here reaches the network."""
        if isinstance(value, dict):
            return {
                key: _LOOPBACK if _names_brokers(key, item) else self._brought_home(item) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._brought_home(item) for item in value]
        if not isinstance(value, str):
            return value
        value = _HTTP_ORIGIN.sub(self._receiver.url(""), value)
        return _EXAMPLE_ADDRESS.sub(_LOOPBACK, value) if ".example:" in value else value

    def _fresh_named(self, collection: str) -> str:
        name = f"fresh-{next(self._numbers)}"
        body: Json = {
            "/payload-specs": {"schema": {"type": "object"}},
            "/configs": {"values": {"greeting": "hello"}},
            "/secrets": {"value": "hush"},
            "/endpoints": self.endpoint(name),
        }[collection]
        self._post(collection, {"name": name, **body})
        return name

    def _fresh_key(self) -> str:
        return str(self._post("/api-keys", {"name": "fuzz", "scopes": ["read"]})["api_key"]["key_id"])

    def _fresh_cron_job(self) -> str:
        body = {"endpoint": document.ENDPOINT, "trigger": "CRON", "cron": "0 0 1 1 *", "timezone": "UTC"}
        return str(self._post("/jobs", body)["job_id"])

    def _fresh_delayed_job(self) -> Json:
        return self._post("/jobs", self.delayed_job(f"fresh-{next(self._numbers)}"))

    def delayed_job(self, key: str) -> Json:
        """The creation of a job that waits."""
        return {"endpoint": document.ENDPOINT, "trigger": "DELAYED", "idempotency_key": key, "run_at": _FAR_AWAY}

    def endpoint(self, name: str, path: str = "/hook") -> Json:
        """The creation of an endpoint that delivers to the receiver."""
        return {"name": name, "type": "HTTP", "spec": {"url": self._receiver.url(path), "method": "POST"}}

    def _post(self, path: str, body: Json) -> Json:
        answer = self._session.post(self._url + path, json=body)
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    def _wait_for_end(self, execution_id: str) -> None:
        end = time.monotonic() + _DEADLINE_SEC
        while self._session.get(f"{self._url}/executions/{execution_id}").json()["status"] not in ("SUCCESS", "FAILED"):
            assert time.monotonic() < end, f"{execution_id} did not end"
            time.sleep(_POLL_SEC)


def _names_brokers(key: str, value: Any) -> bool:
    """Any text is an address to Kafka's clients."""
    return key == "bootstrap_servers" and isinstance(value, str) and value != ""
