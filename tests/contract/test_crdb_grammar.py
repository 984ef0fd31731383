"""CockroachDB's own parser reads every statement and every step. It knows the grammar, and neither types nor plans."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from taskexecutor_common.store import migrate
from taskexecutor_common.store.statements import STATEMENTS
from tests.support import components
from tests.support.sql_text import numbered

PARSER = pathlib.Path(sys.prefix) / "bin" / "crdb_parser"
STEPS = {step.name: step.statement for step in migrate.load_steps() if step.engine != "pg"}
BOOKKEEPING = {f"bookkeeping {n}": text for n, text in enumerate([*migrate._BOOKKEEPING, migrate._TAKE_LOCK])}
TEXTS = {**STEPS, **{name: numbered(text)[0] for name, text in (STATEMENTS | BOOKKEEPING).items()}}
NONSENSE = {
    "no keyword of it": "SELCT 1",
    "PostgreSQL's alone": "LISTEN news",
    "not in its grammar": "SELECT a FROM t TABLESAMPLE SYSTEM (1)",
}


@pytest.fixture(scope="module")
def refused() -> dict[str, str]:
    """What the parser says of all texts that it does not take."""
    if not PARSER.exists():
        pytest.skip("CockroachDB's parser is not built: `make crdb-grammar` does it where Go is at hand")
    components.note("CockroachDB's grammar", "25.2")
    ran = subprocess.run([PARSER], input=json.dumps(TEXTS | NONSENSE), capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout))


@pytest.mark.parametrize("name", TEXTS)
def test_it_takes(refused: dict[str, str], name: str) -> None:
    assert name not in refused, refused.get(name)


@pytest.mark.parametrize("name", NONSENSE)
def test_it_refuses_what_it_has_not(refused: dict[str, str], name: str) -> None:
    """Or it would say nothing of the rest."""
    assert name in refused
