"""The whole document."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tools.openapi.bounds import Schema
from tools.openapi.contract import Contract
from tools.openapi.failures import REQUEST_ID_HEADER, Failures
from tools.openapi.operations import Paths, tag
from tools.openapi.schemas import Schemas

_ROOT = Path(__file__).resolve().parents[2]

_ABOUT = """\
`setTimeout` and `setInterval` as a service: register an endpoint (an HTTP URL, a Kafka topic, a Redis Stream), then create
jobs against it, now, later, or on a cron. Each firing becomes one execution, which is delivered at least once and retried
by policy.

- **Keys.** Every call but the two health checks carries `Authorization: Bearer te_<id>_<secret>`. The key decides the
  namespace, and its scopes what may be done: each operation names the one it asks for (`read`, `write`); `admin` is all.
- **Absent and null.** Answers leave absent fields out and never say null for them; zeros, empty lists and `false` are
  printed. In requests null means absent.
- **Unknown fields** of a request body are dropped without a word, except inside an endpoint's `spec`, where they are
  refused, as unknown query parameters are. A field of the path (`name`, `job_id`) must not stand in the body, too.
- **Numbers** in free JSON (`input`, `values`, `schema`, `spec`) are doubles: integers of magnitude 2^53 and more are
  refused. NUL characters and nesting deeper than 30 levels are refused, too.
- **Pages.** Lists answer `items` and, unless it is the last page, a `cursor` that asks for the next one. A cursor belongs to
  its list and filters.
- **Trying again.** A creation of a job with an `idempotency_key` may be repeated at will: the second one answers 200 and the
  first one's job. 429 and 503 say in `Retry-After` when.
- **Beside the statuses listed** the gateway itself may answer any path with 404 `NOT_FOUND` (no such route), 405
  `METHOD_NOT_ALLOWED`, 408 `DEADLINE_EXCEEDED` (the request did not arrive in time), 415 `UNSUPPORTED_MEDIA_TYPE` or 431
  `HEADERS_TOO_LARGE`, in the same shape.
"""


def build(contract: Contract) -> Schema:
    """The document of a contract, ready to be written."""
    schemas, failures = Schemas(contract), Failures(contract)
    paths = {**Paths(contract, schemas, failures).build(), **_health_paths(failures)}
    schemas.components |= {"Error": failures.error_schema(), "Health": _health_schema()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Task Executor",
            "version": _version(),
            "summary": "Durable timers and delivery as a service",
            "description": _unwrapped(_ABOUT),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8080", "description": "What `make run` starts."}],
        "security": [{"apiKey": []}],
        "tags": [{"name": tag(name), "description": text} for name, text in contract.resources().items()]
        + [{"name": "Health", "description": "For load balancers and start-up scripts."}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "responses": dict(sorted(failures.components.items())),
            "parameters": {"RequestId": _request_id_parameter()},
            "headers": {"RequestId": _request_id_header(), "RetryAfter": _retry_after_header()},
            "securitySchemes": {"apiKey": _security_scheme()},
        },
    }


def _version() -> str:
    return str(tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"])


def _unwrapped(text: str) -> str:
    """Paragraphs and list items on one line each: who shows the text wraps it."""
    return re.sub(r"\n(?!\n|- )(?<!\n\n) *", " ", text.strip())


def _health_paths(failures: Failures) -> dict[str, dict[str, Schema]]:
    ready = failures.by_status(["UNAVAILABLE"])
    return {
        "/healthz": {"get": _health_check("GetLiveness", "The gateway lives", {})},
        "/readyz": {"get": _health_check("GetReadiness", "Some api behind the gateway is well", ready)},
    }


def _health_check(operation_id: str, summary: str, failures: dict[str, Schema]) -> Schema:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}}}
    return {
        "operationId": operation_id,
        "tags": ["Health"],
        "summary": summary,
        "security": [],
        "parameters": [{"$ref": "#/components/parameters/RequestId"}],
        "responses": {"200": {"description": "Yes.", "headers": REQUEST_ID_HEADER, "content": content}, **failures},
    }


def _health_schema() -> Schema:
    return {
        "description": "All is well.",
        "type": "object",
        "properties": {"status": {"type": "string", "const": "ok", "description": "Nothing else."}},
        "required": ["status"],
    }


def _request_id_parameter() -> Schema:
    return {
        "name": "X-Request-Id",
        "in": "header",
        "description": (
            "An id of your own for this call. 1-128 letters, digits, `.`, `_`, `:` and `-` are kept; "
            "anything else is replaced by a new id."
        ),
        "schema": {"type": "string"},
    }


def _request_id_header() -> Schema:
    return {
        "description": "The id of this call: in the body of an error, in the log lines of all services, on the job it created.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    }


def _retry_after_header() -> Schema:
    return {"description": "Seconds to wait.", "required": True, "schema": {"type": "integer", "minimum": 1}}


def _security_scheme() -> Schema:
    return {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "te_<id>_<secret>",
        "description": "An API key. `make run` prints the first one; `POST /api-keys` makes more.",
    }
