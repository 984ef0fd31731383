"""What bad input gets over REST: the right status and code, a message that names the field, and nothing half-written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.conftest import make_key_in
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, in_seconds

pytestmark = pytest.mark.e2e

LISTS = ("/payload-specs", "/configs", "/secrets", "/endpoints", "/jobs", "/api-keys")
SCHEMA: Json = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
HTTP: Json = {"url": "http://127.0.0.1:1/", "method": "POST"}
MANY = 1001


@dataclass(frozen=True)
class Case:
    """A request that must be refused."""

    name: str
    method: str
    target: str  # may name {cron}, {job}, {execution} and {cursor}
    body: Any
    status: int
    code: str
    says: str
    """Part of the message."""
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


CASES: list[Case] = []


def refused(
    status: int, code: str, says: str, name: str, method: str, target: str, body: Any = None, **more: Any
) -> None:
    CASES.append(Case(f"{method} {target.partition('?')[0]}: {name}", method, target, body, status, code, says, **more))


def invalid(says: str, name: str, method: str, target: str, body: Any = None, **more: Any) -> None:
    refused(400, "INVALID_REQUEST", says, name, method, target, body, **more)


def job(**fields: Any) -> Json:
    """An IMMEDIATE job; None takes a field out."""
    body = {"endpoint": "open", "trigger": "IMMEDIATE", "idempotency_key": "a key", **fields}
    return {key: value for key, value in body.items() if value is not None}


def delayed(**fields: Any) -> Json:
    return job(**{"trigger": "DELAYED", "run_at": "2099-01-01T00:00:00Z", **fields})


def cron(**fields: Any) -> Json:
    return job(**{"trigger": "CRON", "idempotency_key": None, "cron": "0 9 * * *", "timezone": "UTC", **fields})


def endpoint(spec: Any = None, **fields: Any) -> Json:
    return {"name": "new", "type": "HTTP", "spec": HTTP if spec is None else spec, **fields}


def http(**spec: Any) -> Json:
    return endpoint({**HTTP, **spec})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"in": value}
    return value


# --- JSON itself ---
for target in ("/configs", "/jobs", "/jobs/batch", "/cron/preview"):
    invalid("", "half a JSON text", "POST", target, raw=b'{"name": "a", ')
    invalid("", "no JSON at all", "POST", target, raw=b"hello")
    invalid("", "an array", "POST", target, raw=b"[1]")
    invalid("", "invalid UTF-8", "POST", target, raw=b'{"name": "\xff"}')
invalid("", "half a JSON text", "PUT", "/configs/shop", raw=b'{"values": ')
invalid("name", "no body", "POST", "/configs")
invalid("endpoint", "no body", "POST", "/jobs")

# --- wrong types ---
invalid("values", "text for an object", "POST", "/configs", {"name": "new", "values": "text"})
invalid("not repeating", "an array for an object", "POST", "/configs", {"name": "new", "values": [1]})
invalid("schema", "text for an object", "POST", "/payload-specs", {"name": "new", "schema": "text"})
invalid("value", "an object for text", "POST", "/secrets", {"name": "new", "value": {}})
invalid("spec", "text for an object", "POST", "/endpoints", endpoint("text"))
invalid("input", "text for an object", "POST", "/jobs", job(input="text"))
invalid("max_attempts", "text for a number", "POST", "/endpoints", endpoint(retry_policy={"max_attempts": "many"}))
invalid("max_attempts", "a fraction", "POST", "/endpoints", endpoint(retry_policy={"max_attempts": 1.5}))
invalid("jobs", "an object for a list", "POST", "/jobs/batch", {"jobs": "text"})

# --- missing fields ---
invalid("name: is required", "no name", "POST", "/payload-specs", {"schema": SCHEMA})
invalid("schema: is required", "no schema", "POST", "/payload-specs", {"name": "new"})
invalid("schema: is required", "no schema", "PUT", "/payload-specs/order", {})
invalid("name: is required", "no name", "POST", "/configs", {"values": {}})
invalid("values: is required", "no values", "POST", "/configs", {"name": "new"})
invalid("values: is required", "no values", "PUT", "/configs/shop", {})
invalid("values: is required", "null values", "POST", "/configs", {"name": "new", "values": None})
invalid("name: is required", "no name", "POST", "/secrets", {"value": "x"})
invalid("value: is required", "no value", "POST", "/secrets", {"name": "new"})
invalid("value: is required", "no value", "PUT", "/secrets/token", {})
invalid("name: is required", "no name", "POST", "/endpoints", {"type": "HTTP", "spec": HTTP})
invalid("type: is required", "no type", "POST", "/endpoints", {"name": "new", "spec": HTTP})
invalid("spec: is required", "no spec", "POST", "/endpoints", {"name": "new", "type": "HTTP"})
invalid("spec.url: is required", "no url", "POST", "/endpoints", endpoint({"method": "GET"}))
invalid("spec.method: is required", "no method", "POST", "/endpoints", endpoint({"url": "http://a/"}))
invalid("spec: is required", "no spec", "PUT", "/endpoints/open", {})
invalid("endpoint: is required", "no endpoint", "POST", "/jobs", job(endpoint=None))
invalid("trigger: is required", "no trigger", "POST", "/jobs", job(trigger=None))
invalid("idempotency_key: is required", "no key", "POST", "/jobs", job(idempotency_key=None))
invalid("idempotency_key: is required", "an empty key", "POST", "/jobs", job(idempotency_key=""))
invalid("idempotency_key: is required", "no key, delayed", "POST", "/jobs", delayed(idempotency_key=None))
invalid("run_at: is required", "no run_at", "POST", "/jobs", delayed(run_at=None))
invalid("cron: is required", "no cron", "POST", "/jobs", cron(cron=None))
invalid("timezone: is required", "no zone", "POST", "/jobs", cron(timezone=None))
invalid("cron: is required", "no cron", "POST", "/cron/preview", {"timezone": "UTC"})
invalid("timezone: is required", "no zone", "POST", "/cron/preview", {"cron": "* * * * *"})
invalid("jobs: has 0 items", "no jobs", "POST", "/jobs/batch", {"jobs": []})
invalid("name: is required", "no name", "POST", "/api-keys", {"scopes": ["read"]})
invalid("scopes", "no scopes", "POST", "/api-keys", {"name": "new"})

# --- fields that belong elsewhere ---
for name, value in {"cron": "* * * * *", "timezone": "UTC", "starts_at": "2099-01-01T00:00:00Z"}.items():
    invalid(f"{name}: belongs to CRON jobs only", f"{name}, immediate", "POST", "/jobs", job(**{name: value}))
    invalid(f"{name}: belongs to CRON jobs only", f"{name}, delayed", "POST", "/jobs", delayed(**{name: value}))
invalid("catch_up: belongs to CRON jobs only", "catch_up, immediate", "POST", "/jobs", job(catch_up="NONE"))
invalid("run_at: belongs to DELAYED", "run_at, immediate", "POST", "/jobs", job(run_at="2099-01-01T00:00:00Z"))
invalid("run_at: belongs to DELAYED", "run_at, cron", "POST", "/jobs", cron(run_at="2099-01-01T00:00:00Z"))
invalid("idempotency_key", "a key, cron", "POST", "/jobs", cron(idempotency_key="mine"))
invalid("name", "a name in the body", "PUT", "/configs/shop", {"name": "other", "values": {}})
invalid("type", "another type", "PUT", "/endpoints/open", {"type": "KAFKA", "spec": {}})

# --- names ---
for bad in ("Bad", "bad name", "bad/name", "-bad", "bäd", "b" * 129, "bad\n"):
    invalid("name: must be", repr(bad)[:20], "POST", "/configs", {"name": bad, "values": {}})
    invalid("name: must be", repr(bad)[:20], "POST", "/endpoints", {**endpoint(), "name": bad})
    invalid("name: must be", repr(bad)[:20], "POST", "/secrets", {"name": bad, "value": "x"})
    invalid("name: must be", repr(bad)[:20], "POST", "/payload-specs", {"name": bad, "schema": {}})
invalid("name: must be", "an underscore", "POST", "/endpoints", {**endpoint(), "name": "under_score"})
refused(409, "CONFLICT", "name", "taken", "POST", "/payload-specs", {"name": "order", "schema": {}})
refused(409, "CONFLICT", "name", "taken", "POST", "/configs", {"name": "shop", "values": {}})
refused(409, "CONFLICT", "name", "taken", "POST", "/secrets", {"name": "token", "value": "x"})
refused(409, "CONFLICT", "name", "taken", "POST", "/endpoints", {**endpoint(), "name": "open"})

# --- what does not exist ---
for target, code in {
    "/payload-specs/nope": "PAYLOAD_SPEC_NOT_FOUND",
    "/configs/nope": "CONFIG_NOT_FOUND",
    "/secrets/nope": "SECRET_NOT_FOUND",
    "/endpoints/nope": "ENDPOINT_NOT_FOUND",
    "/jobs/nope": "JOB_NOT_FOUND",
    "/jobs/job_00000000000000000000000000000000": "JOB_NOT_FOUND",
    "/jobs/nope/status": "JOB_NOT_FOUND",
    "/jobs/nope/versions": "JOB_NOT_FOUND",
    "/jobs/nope/executions": "JOB_NOT_FOUND",
    "/executions/nope": "EXECUTION_NOT_FOUND",
    "/executions/exec_00000000000000000000000000000000": "EXECUTION_NOT_FOUND",
    "/executions/nope/attempts": "EXECUTION_NOT_FOUND",
    "/executions/nope/logs": "EXECUTION_NOT_FOUND",
    "/configs/nope/revisions": "CONFIG_NOT_FOUND",
    "/endpoints/nope/revisions": "ENDPOINT_NOT_FOUND",
}.items():
    refused(404, code, target.split("/")[2], "unknown", "GET", target)
refused(404, "PAYLOAD_SPEC_NOT_FOUND", "nope", "unknown", "PUT", "/payload-specs/nope", {"schema": {}})
refused(404, "CONFIG_NOT_FOUND", "nope", "unknown", "PUT", "/configs/nope", {"values": {}})
refused(404, "SECRET_NOT_FOUND", "nope", "unknown", "PUT", "/secrets/nope", {"value": "x"})
refused(404, "ENDPOINT_NOT_FOUND", "nope", "unknown", "PUT", "/endpoints/nope", {"spec": HTTP})
refused(404, "JOB_NOT_FOUND", "nope", "unknown", "PUT", "/jobs/nope", {"cron": "* * * * *"})
for target, code in {
    "/payload-specs/nope": "PAYLOAD_SPEC_NOT_FOUND",
    "/configs/nope": "CONFIG_NOT_FOUND",
    "/secrets/nope": "SECRET_NOT_FOUND",
    "/endpoints/nope": "ENDPOINT_NOT_FOUND",
    "/api-keys/nope": "API_KEY_NOT_FOUND",
}.items():
    refused(404, code, "nope", "unknown", "DELETE", target)
for verb in ("cancel", "pause", "resume"):
    refused(404, "JOB_NOT_FOUND", "nope", "unknown", "POST", f"/jobs/nope/{verb}", {} if verb == "resume" else None)
refused(404, "EXECUTION_NOT_FOUND", "nope", "unknown", "POST", "/executions/nope/cancel")
refused(404, "ENDPOINT_NOT_FOUND", "nope", "unknown", "POST", "/endpoints/nope/render", {"input": {}})
refused(404, "ENDPOINT_NOT_FOUND", "nope", "unknown", "POST", "/endpoints/nope/test", {"input": {}})
for verb in ("pause", "resume"):
    refused(404, "ENDPOINT_NOT_FOUND", "nope", "unknown", "POST", f"/endpoints/nope/{verb}")
for make in (job, delayed, cron):
    refused(
        404, "ENDPOINT_NOT_FOUND", "nope", f"unknown endpoint, {make.__name__}", "POST", "/jobs", make(endpoint="nope")
    )
refused(422, "INVALID_PAYLOAD_SPEC_REF", "payload_spec", "unknown", "POST", "/endpoints", endpoint(payload_spec="nope"))
refused(422, "INVALID_CONFIG_REF", "config", "unknown", "POST", "/endpoints", endpoint(config="nope"))
refused(422, "INVALID_CONFIG_REF", "config", "unknown", "PUT", "/endpoints/open", {"spec": HTTP, "config": "nope"})

# --- what can not be carried ---
HUGE = "x" * (1 << 20)
BIG = "x" * (256 << 10)
for target in ("/configs", "/jobs", "/jobs/batch"):
    refused(413, "PAYLOAD_TOO_LARGE", "1048576", "oversized body", "POST", target, {"name": HUGE})
invalid("input: has more than 256 KiB", "too large", "POST", "/jobs", job(input={"a": BIG}))
invalid("values: has more than 256 KiB", "too large", "POST", "/configs", {"name": "new", "values": {"a": BIG}})
invalid("value", "too large", "POST", "/secrets", {"name": "new", "value": "x" * 65_537})
invalid("idempotency_key: has 256 characters", "too long", "POST", "/jobs", job(idempotency_key="k" * 256))
invalid("input.a: must not contain NUL", "NUL", "POST", "/jobs", job(input={"a": "x\x00"}))
invalid("input: a key must not contain NUL", "NUL in a key", "POST", "/jobs", job(input={"a\x00": 1}))
invalid("name: must not contain NUL", "NUL", "POST", "/configs", {"name": "a\x00", "values": {}})
invalid("endpoint: must not contain NUL", "NUL in a filter", "GET", "/jobs?endpoint=%00")
invalid("idempotency_key: must not contain NUL", "NUL", "POST", "/jobs", job(idempotency_key="a\x00"))
invalid("values.list.1: must not", "NUL", "POST", "/configs", {"name": "new", "values": {"list": [1, "\x00"]}})
invalid("value: must not contain NUL", "NUL", "POST", "/secrets", {"name": "new", "value": "a\x00"})
invalid("nested deeper", "31 levels", "POST", "/jobs", job(input=nested(31)))
invalid("", "200 levels", "POST", "/jobs", job(input=nested(200)))
invalid("", "5000 levels", "POST", "/jobs", raw=b'{"input": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001)
for number in (2**53, -(2**53), 10**30):
    invalid("input.n: an integer of magnitude 2^53", str(number), "POST", "/jobs", job(input={"n": number}))
invalid("values.a.0", "2^53", "POST", "/configs", {"name": "new", "values": {"a": [2**53]}})
invalid("", "beyond a double", "POST", "/jobs", raw=json.dumps(job(input={})).replace("{}", '{"n": 1e999}').encode())
invalid("", "NaN", "POST", "/jobs", raw=json.dumps(job(input={})).replace("{}", '{"n": NaN}').encode())

# --- enums ---
for value in ("SOMETIMES", 99, "immediate"):
    invalid("trigger", repr(value), "POST", "/jobs", job(trigger=value))
invalid("type", "unknown", "POST", "/endpoints", {**endpoint(), "type": "CARRIER_PIGEON"})
invalid("type", "99", "POST", "/endpoints", {**endpoint(), "type": 99})
invalid("catch_up", "unknown", "POST", "/jobs", cron(catch_up="SOME"))
invalid("catch_up", "99", "POST", "/jobs", cron(catch_up=99))
invalid("backoff", "unknown", "POST", "/endpoints", endpoint(retry_policy={"backoff": "random"}))
invalid("retry_policy.backoff", "99", "POST", "/endpoints", endpoint(retry_policy={"backoff": 99}))
invalid("trigger", "unknown", "GET", "/jobs?trigger=SOMETIMES")
invalid("status", "unknown", "GET", "/jobs?status=DONE")
invalid("status", "unknown", "GET", "/jobs/{job}/executions?status=DONE")
invalid("scopes", "unknown", "POST", "/api-keys", {"name": "new", "scopes": ["everything"]})

# --- times and crons ---
for bad in (
    "tomorrow",
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-01-01",
    "",
    12345,
    "10000-01-01T00:00:00Z",
):
    invalid("run_at", repr(bad), "POST", "/jobs", delayed(run_at=bad))
invalid("starts_at", "no time", "POST", "/jobs", cron(starts_at="soon"))
invalid(
    "ends_at",
    "before the start",
    "POST",
    "/jobs",
    cron(starts_at="2099-01-02T00:00:00Z", ends_at="2099-01-01T00:00:00Z"),
)
for bad in (
    "* * *",
    "61 * * * *",
    "* 24 * * *",
    "0 0 30 2 *",
    "0 0 31 4,6 *",
    "0 0 9 * * MON",
    "*/0 * * * *",
    "@never",
    "a b c d e",
    "5-1 * * * *",
):
    refused(422, "INVALID_CRON", "cron", bad, "POST", "/jobs", cron(cron=bad))
    refused(422, "INVALID_CRON", "cron", bad, "POST", "/cron/preview", {"cron": bad, "timezone": "UTC"})
    refused(422, "INVALID_CRON", "cron", bad, "PUT", "/jobs/{cron}", {"cron": bad})
for bad in ("Mars/Olympus", "berlin", "../../etc/passwd", "+02:00", "Factory"):
    refused(422, "INVALID_CRON", "timezone", bad, "POST", "/jobs", cron(timezone=bad))
    refused(422, "INVALID_CRON", "timezone", bad, "POST", "/cron/preview", {"cron": "* * * * *", "timezone": bad})
    refused(422, "INVALID_CRON", "timezone", bad, "PUT", "/jobs/{cron}", {"timezone": bad})
refused(422, "INVALID_CRON", "cron", "its end has passed", "POST", "/jobs", cron(ends_at="2020-01-01T00:00:00Z"))
for count in (0, 1001, -1):
    body = {"cron": "* * * * *", "timezone": "UTC", "count": count}
    invalid("count", str(count), "POST", "/cron/preview", body)

# --- schemas and inputs ---
for bad_schema in ({"type": "objct"}, {"properties": 5}, {"required": "amount"}, {"pattern": "("}):
    refused(
        422,
        "INVALID_SCHEMA",
        "schema",
        str(bad_schema),
        "POST",
        "/payload-specs",
        {"name": "new", "schema": bad_schema},
    )
    refused(422, "INVALID_SCHEMA", "schema", str(bad_schema), "PUT", "/payload-specs/order", {"schema": bad_schema})
remote = {"name": "new", "schema": {"$ref": "http://127.0.0.1:1/schema.json"}}
refused(422, "INVALID_SCHEMA", "schema", "a remote reference", "POST", "/payload-specs", remote)
for make in (job, delayed, cron):
    kind = make.__name__
    bad_amount = make(endpoint="checked", input={"amount": 12.5})
    refused(
        422, "INPUT_VALIDATION_FAILED", "input.amount: 12.5 is not", f"fraction, {kind}", "POST", "/jobs", bad_amount
    )
    refused(
        422,
        "INPUT_VALIDATION_FAILED",
        "amount",
        f"missing, {kind}",
        "POST",
        "/jobs",
        make(endpoint="checked", input={}),
    )
    refused(422, "INPUT_VALIDATION_FAILED", "amount", f"no input, {kind}", "POST", "/jobs", make(endpoint="checked"))
refused(
    422,
    "INPUT_VALIDATION_FAILED",
    "input.amount",
    "text",
    "POST",
    "/endpoints/checked/render",
    {"input": {"amount": "1"}},
)
refused(
    422,
    "INPUT_VALIDATION_FAILED",
    "input.amount",
    "text",
    "POST",
    "/endpoints/checked/test",
    {"input": {"amount": "1"}},
)
refused(
    422, "INPUT_VALIDATION_FAILED", "input.amount", "text", "PUT", "/jobs/{checked_cron}", {"input": {"amount": "1"}}
)

# --- templates ---
for where in ("url", "headers", "body_template"):
    for text in ("{{secret.nope}}", "{{config.nope}}", "{{cofnig.base}}"):
        value = {"url": f"http://a/{text}", "headers": {"X-A": text}, "body_template": {"deep": [text]}}[where]
        refused(
            422,
            "TEMPLATE_RESOLUTION_FAILED",
            text.strip("{}"),
            f"{text} in {where}",
            "POST",
            "/endpoints",
            {**http(**{where: value}), "config": "shop"},
        )
for text in ("{{secret}}", "{{input.name", "{{}}", "{{input..name}}"):
    invalid("spec.body_template.a: ", f"no placeholder: {text}", "POST", "/endpoints", http(body_template={"a": text}))
refused(
    422,
    "TEMPLATE_RESOLUTION_FAILED",
    "config.base",
    "no config named",
    "POST",
    "/endpoints",
    http(body_template="{{config.base}}"),
)
refused(
    422,
    "TEMPLATE_RESOLUTION_FAILED",
    "input.name",
    "the input lacks it",
    "POST",
    "/endpoints/greeting/render",
    {"input": {}},
)
refused(
    422,
    "TEMPLATE_RESOLUTION_FAILED",
    "input.name",
    "the input lacks it",
    "POST",
    "/endpoints/greeting/test",
    {"input": {}},
)
refused(409, "CONFLICT", "base", "an endpoint names it", "PUT", "/configs/shop", {"values": {}})

# --- HTTP specs ---
for url in (
    "ftp://a/",
    "no url",
    "http://",
    "http://a b/",
    "//a/",
    "{{input.url}}",
    "",
    "http://a:99999/",
    "http://a/../b",
):
    invalid("spec.url", url, "POST", "/endpoints", http(url=url))
for header in ("bad name", "", "a:b", "ü", "Host", "Idempotency-Key", "webhook-id", "Content-Length", "User-Agent"):
    invalid(f"spec.headers.{header}", f"header '{header}'", "POST", "/endpoints", http(headers={header: "x"}))
invalid("spec.headers.X-A", "a line break", "POST", "/endpoints", http(headers={"X-A": "a\r\nX-B: c"}))
invalid("spec.headers.X-A", "a number", "POST", "/endpoints", http(headers={"X-A": 5}))
invalid(": is given twice", "twice", "POST", "/endpoints", http(headers={"X-A": "1", "x-a": "2"}))
invalid("spec.method", "unknown", "POST", "/endpoints", http(method="HEAD"))
invalid("spec.timeout", "unknown field", "POST", "/endpoints", http(timeout=5))
for timeout in (0, 900_001, "5000", 1.5, -1):
    invalid("spec.timeout_ms", repr(timeout), "POST", "/endpoints", http(timeout_ms=timeout))
for statuses in ([], [99], [600], ["200"], 200):
    invalid("spec.expected_status_codes", str(statuses), "POST", "/endpoints", http(expected_status_codes=statuses))
for name, bad in {"max_attempts": 0, "initial_delay_ms": -1, "max_delay_ms": 86_400_001}.items():
    invalid(f"retry_policy.{name}", str(bad), "POST", "/endpoints", endpoint(retry_policy={name: bad}))
invalid("retry_policy.max_attempts", "101", "POST", "/endpoints", endpoint(retry_policy={"max_attempts": 101}))
invalid(
    "retry_policy.non_retryable_status_codes.1",
    "99",
    "POST",
    "/endpoints",
    endpoint(retry_policy={"non_retryable_status_codes": [400, 99]}),
)

# --- flow control ---
ABOVE, BELOW = 10_001, 0
for path, numbers in {
    "max_in_flight": (BELOW, ABOVE, -1),
    "rate_limit.per_second": (0.0009, 10_000.1, -1, "NaN", "Infinity"),
    "rate_limit.burst": (BELOW, ABOVE),
    "circuit_breaker.failure_rate": (0, 1.01, -0.5, "NaN"),
    "circuit_breaker.minimum_attempts": (BELOW, ABOVE),
    "circuit_breaker.window_sec": (BELOW, 3601),
    "circuit_breaker.open_sec": (BELOW, 86_401),
}.items():
    part, _, leaf = path.rpartition(".")
    for number in numbers:
        limits: Json = {leaf: number}
        if part == "rate_limit":
            limits = {"per_second": 5, **limits}
        limits = {part: limits} if part else limits
        said = f"flow_control.{path}: {str(number).lower()[:3]}"
        invalid(said, f"{path} {number}", "POST", "/endpoints", endpoint(flow_control=limits))
        invalid(said, f"{path} {number}", "PUT", "/endpoints/open", {"spec": HTTP, "flow_control": limits})
for limits in ({"rate_limit": {}}, {"rate_limit": {"burst": 5}}, {"rate_limit": {"per_second": 0}}):
    required = "flow_control.rate_limit.per_second: is required"
    invalid(required, str(limits), "POST", "/endpoints", endpoint(flow_control=limits))
for limits in ({"max_in_flight": 1.5}, {"max_in_flight": "many"}, {"circuit_breaker": {"open_sec": 0.5}}):
    said = next(iter(limits))
    invalid(said, f"of a wrong type: {limits}", "POST", "/endpoints", endpoint(flow_control=limits))

# --- lists ---
for target in (
    *LISTS,
    "/jobs/{job}/executions",
    "/jobs/{job}/versions",
    "/jobs/{cron}/versions",
    "/executions/{execution}/logs",
):
    for limit in ("0", "201", "-1", "abc", "1.5"):
        invalid("limit", f"limit {limit}", "GET", f"{target}?limit={limit}")
    invalid("cursor", "a damaged cursor", "GET", f"{target}?cursor=abc")
    invalid("cursor", "an empty cursor", "GET", f"{target}?cursor=")
    invalid("colour", "an unknown parameter", "GET", f"{target}?colour=red")
for target in ("/secrets", "/endpoints", "/jobs", "/configs/shop/revisions"):
    invalid("cursor", "another list's cursor", "GET", f"{target}?cursor={{cursor}}")
invalid("cursor", "a cursor with a changed letter", "GET", "/configs?cursor=x{cursor}")

# --- batches ---
invalid("jobs: has 1001 items", "too many", "POST", "/jobs/batch", {"jobs": [job()] * MANY})

# --- what can not be changed ---
refused(409, "JOB_NOT_UPDATABLE", "{job}", "one-shot", "PUT", "/jobs/{job}", {"cron": "* * * * *"})
refused(409, "JOB_NOT_UPDATABLE", "{job}", "one-shot", "POST", "/jobs/{job}/pause")
refused(409, "JOB_NOT_UPDATABLE", "{job}", "one-shot", "POST", "/jobs/{job}/resume", {})

# --- the door ---
GOOD_FORM = "te_0123456789abcdef_" + "0" * 64
for name, header in {
    "no key": "",
    "unknown key": f"Bearer {GOOD_FORM}",
    "no form of a key": "Bearer hello",
    "wrong scheme": f"Basic {GOOD_FORM}",
    "no scheme": GOOD_FORM,
    "a very long key": "Bearer te_" + "a" * 4000,
}.items():
    for method, target, body in (("GET", "/jobs", None), ("POST", "/jobs", job())):
        refused(401, "UNAUTHORIZED", "API key", name, method, target, body, headers={"authorization": header})
for method, target in (
    ("GET", "/"),
    ("GET", "/nope"),
    ("GET", "/configs/"),
    ("POST", "/jobs/a/b/c"),
    ("GET", "/v1/jobs"),
):
    refused(404, "NOT_FOUND", target, "no such route", method, target)
for method, target in (
    ("DELETE", "/jobs"),
    ("PATCH", "/configs/shop"),
    ("GET", "/cron/preview"),
    ("PUT", "/secrets"),
    ("GET", "/jobs/{job}/cancel"),
    ("POST", "/executions/{execution}"),
):
    refused(405, "METHOD_NOT_ALLOWED", method, "wrong method", method, target)


@pytest.fixture(scope="module")
async def tenant(system: System) -> tuple[Rest, dict[str, str]]:
    """A namespace with one of everything, and the ids in it."""
    rest = await make_key_in(system, fresh("namespace"))
    await rest.create("/payload-specs", {"name": "order", "schema": SCHEMA})
    await rest.create("/configs", {"name": "shop", "values": {"base": "http://127.0.0.1:1"}})
    await rest.create("/configs", {"name": "second", "values": {}})
    await rest.create("/secrets", {"name": "token", "value": "keep me to yourself"})
    await rest.create("/endpoints", {**endpoint(), "name": "open"})
    await rest.create("/endpoints", {**endpoint(payload_spec="order"), "name": "checked"})
    greeting = http(url="{{config.base}}/greeting", body_template={"hello": "{{input.name}}"})
    await rest.create("/endpoints", {**greeting, "name": "greeting", "config": "shop"})
    waiting = await rest.create("/jobs", delayed(run_at=in_seconds(3600)))
    ticking = await rest.create("/jobs", cron(cron="0 0 1 1 *"))
    checked = await rest.create("/jobs", cron(cron="0 0 1 1 *", endpoint="checked", input={"amount": 1}))
    return rest, {
        "job": waiting["job_id"],
        "execution": waiting["execution"]["execution_id"],
        "cron": ticking["job_id"],
        "checked_cron": checked["job_id"],
        "cursor": (await rest.get("/configs?limit=1"))["cursor"],
    }


async def everything(rest: Rest) -> dict[str, str]:
    """All that the namespace holds."""
    return {path: (await rest.call("GET", f"{path}?limit=200")).text for path in LISTS}


@pytest.fixture(scope="module")
async def before(tenant: tuple[Rest, dict[str, str]]) -> dict[str, str]:
    """All that was there at the beginning."""
    return await everything(tenant[0])


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_it_is_refused_by_name_and_changes_nothing(
    tenant: tuple[Rest, dict[str, str]], before: dict[str, str], case: Case
) -> None:
    rest, ids = tenant
    answered = await rest.call(case.method, fill(case.target, ids), case.body, raw=case.raw, headers=case.headers)
    assert (answered.status, answered.code) == (case.status, case.code), answered.text
    assert fill(case.says, ids) in answered.message
    if case.status == 405:
        assert answered.headers["allow"]
    assert await everything(rest) == before


def fill(text: str, ids: dict[str, str]) -> str:
    """Puts ids in; other braces stay."""
    for name, value in ids.items():
        text = text.replace(f"{{{name}}}", value)
    return text
