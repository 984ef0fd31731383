"""docs/brief.md keeps its word: its tests exist, no row is unanswered, and nothing that the brief lists is left out."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

import psycopg
import pytest

from taskexecutor.v1.error_pb2 import ErrorCode
from taskexecutor_common.config.settings import ApiSettings, DatabaseSettings, DispatcherSettings, SchedulerSettings
from tests.contract.deploy.files import ROOT, text, variables
from tests.integration.envoy.rules import RULES

PAGE = text("docs/brief.md")
TABLE = "| the brief asks | answered by |\n| --- | --- |\n"
REFERENCE = re.compile(r"\b(tests/[\w/]+\.py)::(\w+(?:::\w+)?)`")
REASON = re.compile(r"otherwise: \S.{20,}")

HEADINGS = """
What to Build, Conceptual Model, Three-Step Model, Domain Model, Template Resolution, Deduplication,
API Specification, Authentication, Payload Specs, Configs, Secrets, Endpoints, Jobs, Execution Endpoints, All List Endpoints,
Error Responses, CockroachDB Schema, Key Queries, Worker Architecture, Scheduler Architecture, Configuration,
Crate Recommendations, Project Structure, Process Topology, End-to-End Flows, What to Stub, Important Implementation Notes
"""

ROUTES = [
    *(
        f"{verb} /{things}"
        for things in ("payload-specs", "configs", "secrets", "endpoints")
        for verb in ("POST", "GET")
    ),
    *(
        f"{verb} /{things}/{{name}}"
        for things in ("payload-specs", "configs", "secrets", "endpoints")
        for verb in ("GET", "PUT", "DELETE")
    ),
    "POST /jobs",
    "GET /jobs",
    "GET /jobs/{job_id}",
    "PUT /jobs/{job_id}",
    "POST /jobs/{job_id}/cancel",
    "GET /jobs/{job_id}/status",
    "GET /jobs/{job_id}/versions",
    "GET /executions/{execution_id}",
    "POST /executions/{execution_id}/cancel",
    "GET /executions/{execution_id}/attempts",
    "GET /executions/{execution_id}/logs",
    "GET /jobs/{job_id}/executions",
]

CODES = {
    400: "INVALID_REQUEST",
    401: "UNAUTHORIZED",
    404: "PAYLOAD_SPEC_NOT_FOUND CONFIG_NOT_FOUND SECRET_NOT_FOUND ENDPOINT_NOT_FOUND JOB_NOT_FOUND EXECUTION_NOT_FOUND",
    409: "CONFLICT JOB_NOT_UPDATABLE EXECUTION_NOT_CANCELLABLE",
    422: "INVALID_CRON INVALID_SCHEMA INVALID_PAYLOAD_SPEC_REF INVALID_CONFIG_REF INPUT_VALIDATION_FAILED"
    " TEMPLATE_RESOLUTION_FAILED",
    429: "RATE_LIMITED",
    500: "INTERNAL_ERROR",
}

DEFAULTS: list[tuple[type[DatabaseSettings], str, Any]] = [
    (DispatcherSettings, "TE_WORKER_MAX_CONCURRENT", 50),
    (DispatcherSettings, "TE_WORKER_POLL_INTERVAL_MS", 200),
    (DispatcherSettings, "TE_CONFIG_CACHE_TTL_SEC", 60),
    (DispatcherSettings, "TE_SECRET_CACHE_TTL_SEC", 300),
    (DispatcherSettings, "TE_WORKER_SHUTDOWN_TIMEOUT_SEC", 30),
    (DispatcherSettings, "TE_DB_POOL_SIZE", 10),
    (SchedulerSettings, "TE_CRON_TICK_INTERVAL_SEC", 1),
    (SchedulerSettings, "TE_CRON_BATCH_SIZE", 100),
    (SchedulerSettings, "TE_PROMOTE_INTERVAL_MS", 500),
    (SchedulerSettings, "TE_RECLAIM_INTERVAL_SEC", 30),
    (SchedulerSettings, "TE_STUCK_EXECUTION_TIMEOUT_SEC", 300),
    (ApiSettings, "TE_LISTEN_ADDR", "0.0.0.0:8080"),
    (ApiSettings, "TE_DATABASE_URL", None),
    (ApiSettings, "TE_DB_POOL_SIZE", 20),
]
"""What the brief's configuration tables say; None is required."""
OTHERWISE = {"TE_WORKER_MAX_CONCURRENT", "TE_STUCK_EXECUTION_TIMEOUT_SEC", "TE_LISTEN_ADDR"}

COLUMNS = {
    "payload_specs": "name schema_json created_at updated_at",
    "configs": "name values_json created_at updated_at",
    "secrets": "name encrypted_value created_at updated_at",
    "endpoints": "name endpoint_type payload_spec_ref config_ref spec retry_policy created_at updated_at",
    "jobs": "job_id crdb_region endpoint endpoint_type trigger_type status version previous_version_id replaced_by_id"
    " idempotency_key input run_at cron_expression cron_timezone cron_starts_at cron_ends_at cron_next_run_at cron_last_tick_at"
    " created_at retired_at",
    "executions": "execution_id crdb_region job_id endpoint endpoint_type idempotency_key status input output attempt_count"
    " max_attempts worker_id run_at started_at completed_at duration_ms created_at",
    "attempts": "crdb_region execution_id attempt_number status started_at completed_at duration_ms output error",
    "execution_logs": "crdb_region execution_id attempt_number level message logged_at",
    "region_heartbeats": "region component last_beat_at status metadata",
    "region_status": "region alive failed_at adopted_by updated_at",
}
"""The brief's tables, less `attempt_id`, `log_id` and `attempts.created_at`: these rows are keyed by what they are about, and
written once, when the attempt has ended."""
VIEWS = {name: f"{name[:-1]}_details" for name in ("configs", "endpoints", "jobs", "executions")}
OTHER_NAMES = {
    "crdb_region": "region",
    "payload_spec_ref": "payload_spec",
    "config_ref": "config",
    "cron_next_run_at": "next_run_at",
    "cron_last_tick_at": "last_tick_at",
}
WORDS = {
    "endpoints_type_ck": "HTTP KAFKA REDIS_STREAM",
    "jobs_trigger_ck": "IMMEDIATE DELAYED CRON",
    "cron_jobs_status_ck": "ACTIVE RETIRED",
    "executions_status_ck": "PENDING QUEUED RUNNING RETRYING SUCCESS FAILED CANCELLED",
    "attempts_status_ck": "SUCCESS FAILED",
    "execution_logs_level_ck": "DEBUG INFO WARN ERROR",
}
INDEXES = {
    "idx_jobs_cron_due": ("cron_jobs_due_idx", "lane, next_run_at"),
    "idx_jobs_endpoint": ("jobs_endpoint_idx", "endpoint_id, created_at DESC"),
    "idx_executions_by_job": ("executions_tick_uq", "job_id, tick_at"),
    "idx_attempts_by_execution": ("attempts_pkey", "execution_id, attempt_number"),
    "idx_logs_by_execution": ("execution_logs_pkey", "execution_id, attempt_number, seq"),
    "idx_logs_by_attempt": ("execution_logs_pkey", "execution_id, attempt_number, seq"),
}


def rows() -> list[list[str]]:
    """The cells of all rows of all tables of demands."""
    tables = [part.partition("\n\n")[0] for part in PAGE.split(TABLE)[1:]]
    return [re.split(r"(?<!\\) \| ", line.strip("| ")) for table in tables for line in table.strip().splitlines()]


@cache
def names_in(path: str) -> set[str]:
    """The tests of a file, those in classes as `Class::test`; none where there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return set()
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        found |= {f"{node.name}::{name}" for name in _tests(node.body)} if isinstance(node, ast.ClassDef) else set()
        found |= set(_tests([node]))
    return found


def _tests(nodes: list[ast.stmt]) -> list[str]:
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [node.name for node in functions if node.name.startswith("test_")]


def test_every_test_that_the_page_names_exists() -> None:
    named = REFERENCE.findall(PAGE)
    assert len(named) > 200
    assert len(named) == PAGE.count(".py::"), "a name that is not written as `tests/...py::test_...`"
    assert sorted({f"{path}::{name}" for path, name in named if name not in names_in(path)}) == []


def test_every_row_names_a_test_or_a_reason() -> None:
    assert len(rows()) > 150
    assert [row for row in rows() if len(row) != 2] == []
    assert [asks for asks, answer in rows() if not REFERENCE.search(answer) and not REASON.match(answer)] == []


def test_every_heading_of_the_brief_has_its_rows() -> None:
    sections = re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]
    filled = [section.partition("\n")[0] for section in sections if TABLE in section or section.startswith("API Spec")]
    assert filled == re.split(r",\s", HEADINGS.strip())


def test_every_link_of_the_page_leads_somewhere() -> None:
    files = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", PAGE)]
    assert [file for file in files if file and not (ROOT / "docs" / file).exists()] == []
    anchors = {
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", PAGE, re.M)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= anchors


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_of_the_brief_is_on_the_page_and_in_the_contract(route: str) -> None:
    assert any(f"`{route}`" in asks for asks, _ in rows())
    assert route in {f"{rule.verb} {rule.template}" for rule in RULES}


@pytest.mark.parametrize(
    ("status", "code"), [(status, code) for status, names in CODES.items() for code in names.split()]
)
def test_a_code_of_the_brief_is_on_the_page_with_its_status(status: int, code: str) -> None:
    assert code in ErrorCode.Value.keys()  # noqa: SIM118 not a dict
    assert any(re.search(rf"\b{status} \D*`{code}`", asks) for asks, _ in rows())


@pytest.mark.parametrize(("settings", "variable", "default"), DEFAULTS)
def test_a_variable_of_the_brief_has_its_default(settings: type[DatabaseSettings], variable: str, default: Any) -> None:
    component = {DispatcherSettings: "Worker", SchedulerSettings: "Scheduler", ApiSettings: "API"}[settings]
    (answer,) = [answer for asks, answer in rows() if asks.startswith(f"{component}: ") and f"`{variable}`" in asks]
    fields = {name: field for field in settings.model_fields for name in variables(settings, field)}
    in_code = settings.model_fields[fields[variable]] if variable in fields else None
    same = in_code is not None and (in_code.is_required() if default is None else in_code.default == default)
    assert same == (variable not in OTHERWISE) == ("otherwise: " not in answer)


@pytest.mark.parametrize("table", COLUMNS)
async def test_no_column_of_the_brief_was_lost(catalog: psycopg.AsyncConnection[Any], table: str) -> None:
    assert f"`{table}`" in PAGE
    cursor = await catalog.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name IN (%s, %s)",
        (table, VIEWS.get(table, table)),
    )
    ours = {name for (name,) in await cursor.fetchall()}
    assert {OTHER_NAMES.get(column, column) for column in COLUMNS[table].split()} - ours == set()


@pytest.mark.parametrize("constraint", WORDS)
async def test_the_database_takes_the_words_of_the_brief_and_no_others(
    catalog: psycopg.AsyncConnection[Any], constraint: str
) -> None:
    cursor = await catalog.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", (constraint,)
    )
    ((definition,),) = await cursor.fetchall()
    assert re.findall(r"'(\w+)'", definition) == WORDS[constraint].split()


@pytest.mark.parametrize("name", INDEXES)
async def test_a_read_index_of_the_brief_has_its_counterpart(catalog: psycopg.AsyncConnection[Any], name: str) -> None:
    assert f"`{name}`" in PAGE
    ours, columns = INDEXES[name]
    cursor = await catalog.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", (ours,))
    ((definition,),) = await cursor.fetchall()
    assert f"({columns}" in definition
