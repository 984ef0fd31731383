"""The linter finds what it is for: a bad example for each of its rules, beside a good one that it leaves alone."""

from __future__ import annotations

import pytest

from taskexecutor_common.store.migrate import Step
from tests.support.sql_lint import RULES, RULES_OF_STEPS, lint, lint_step, read_schema

SCHEMA = read_schema(
    Step(name, "both", text)
    for name, text in {
        "tasks": """CREATE TABLE IF NOT EXISTS tasks (
            lane SMALLINT NOT NULL, due_at TIMESTAMPTZ NOT NULL, task_id UUID NOT NULL, owner TEXT, hash BYTEA,
            size INTEGER NOT NULL, weight DOUBLE PRECISION, status TEXT NOT NULL,
            CONSTRAINT tasks_pkey PRIMARY KEY (lane, due_at, task_id))""",
        "notes": """CREATE TABLE IF NOT EXISTS notes (
            task_id UUID NOT NULL, body TEXT, CONSTRAINT notes_pkey PRIMARY KEY (task_id))""",
        "tasks_hash_uq": "CREATE UNIQUE INDEX IF NOT EXISTS tasks_hash_uq ON tasks (hash) WHERE hash IS NOT NULL",
        "tasks_owner_idx": "CREATE INDEX IF NOT EXISTS tasks_owner_idx ON tasks (owner) WHERE status = 'OPEN'",
        "open_tasks": "CREATE OR REPLACE VIEW open_tasks AS SELECT t.owner, t.size FROM tasks AS t WHERE t.status = 'OPEN'",
    }.items()
)

LOCKED = """WITH x AS MATERIALIZED (
    SELECT t.lane, t.due_at, t.task_id FROM tasks AS t
    WHERE t.lane = %(lane)s::smallint ORDER BY t.due_at, t.task_id LIMIT 50 FOR UPDATE SKIP LOCKED)
    DELETE FROM tasks AS t USING x WHERE t.lane = x.lane AND t.due_at = x.due_at AND t.task_id = x.task_id
    RETURNING t.task_id"""

GOOD = {
    "a walk of the key that locks": LOCKED,
    "one row, locked": "SELECT n.body FROM notes AS n WHERE n.task_id = %(id)s::uuid FOR UPDATE",
    "a row by a partial unique index, locked": (
        "SELECT t.size FROM tasks AS t WHERE t.hash = %(h)s::bytea AND t.hash IS NOT NULL FOR UPDATE"
    ),
    "a predicate that is repeated": "SELECT t.size FROM tasks AS t WHERE t.owner = %(o)s::text AND t.status = 'OPEN'",
    "a predicate that a view repeats": "SELECT t.size FROM open_tasks AS t WHERE t.owner = %(o)s::text",
    "an order by what a condition keeps from being NULL": (
        "SELECT t.owner FROM tasks AS t WHERE t.weight < %(w)s::double precision ORDER BY t.weight"
    ),
    "a quotient of doubles": "SELECT t.size / t.weight AS density FROM tasks AS t",
    "a duration": "SELECT (extract(epoch FROM now() - t.due_at) * 1000)::double precision AS ms FROM tasks AS t",
    "an upsert by the key": (
        "INSERT INTO notes (task_id, body) VALUES (%(id)s::uuid, %(b)s::text)"
        " ON CONFLICT (task_id) DO UPDATE SET body = excluded.body RETURNING task_id"
    ),
    "two tables in one statement": (
        "WITH t AS (DELETE FROM tasks AS t WHERE t.lane = 1 RETURNING t.task_id)"
        " DELETE FROM notes AS n USING t WHERE n.task_id = t.task_id RETURNING n.task_id"
    ),
}

BAD = {
    "is_one_statement": [
        "SELECT 1; SELECT 2",
        "CREATE TABLE x (a TEXT)",
        "MERGE INTO notes AS n USING tasks AS t ON n.task_id = t.task_id WHEN MATCHED THEN DELETE",
        "UPDATE tasks SET size = 1 WHERE lane = 1 ORDER BY due_at LIMIT 5",
        "UPSERT INTO notes (task_id) VALUES (%(id)s::uuid)",
    ],
    "writes_each_table_once": [
        "WITH a AS (DELETE FROM notes AS n WHERE n.body = 'x' RETURNING n.task_id) UPDATE notes AS n SET body = 'y' FROM a"
        " WHERE n.task_id = a.task_id"
    ],
    "writes_at_the_top_only": [
        "WITH a AS (WITH b AS (DELETE FROM notes AS n WHERE n.body = 'x' RETURNING n.task_id) SELECT b.task_id FROM b)"
        " SELECT a.task_id FROM a"
    ],
    "lists_its_columns": [
        "SELECT * FROM notes AS n",
        "SELECT n.* FROM notes AS n",
        "DELETE FROM notes AS n WHERE n.body = 'x' RETURNING *",
        "INSERT INTO notes VALUES (%(id)s::uuid, 'x')",
    ],
    "conflicts_on_a_unique_index": [
        "INSERT INTO tasks (lane, hash) VALUES (1, %(h)s::bytea) ON CONFLICT (hash) DO NOTHING",
        "INSERT INTO tasks (lane, hash) VALUES (1, %(h)s::bytea) ON CONFLICT (hash) WHERE size = 1 DO NOTHING",
        "INSERT INTO notes (task_id) VALUES (%(id)s::uuid) ON CONFLICT DO NOTHING",
        "INSERT INTO notes (task_id) VALUES (%(id)s::uuid) ON CONFLICT ON CONSTRAINT notes_pkey DO NOTHING",
        "INSERT INTO notes (task_id, body) VALUES (%(id)s::uuid, 'x') ON CONFLICT (body) DO NOTHING",
        "INSERT INTO notes (task_id) VALUES (%(id)s::uuid) ON CONFLICT (task_id) DO UPDATE SET task_id = excluded.task_id",
    ],
    "has_types_of_both": [
        "SELECT %(x)s::numeric AS x",
        "SELECT %(x)s::timestamp AS x",
        "SELECT %(x)s::json AS x",
        "SELECT %(x)s::varchar AS x",
        "SELECT %(x)s::int AS x",
        "SELECT %(x)s::interval AS x",
        "SELECT x.a FROM jsonb_to_recordset(%(x)s::jsonb) AS x (a date)",
    ],
    "has_functions_of_both": [
        "SELECT gen_random_uuid() AS x",
        "SELECT pg_advisory_xact_lock(1) AS x",
        "SELECT make_interval(0, 1) AS x",
        "SELECT date_bin('1 hour', now(), now()) AS x",
    ],
    "has_operators_of_both": [
        "SELECT t.size / 2 AS x FROM tasks AS t",
        "SELECT t.size % 2 AS x FROM tasks AS t",
        "SELECT t.owner ~ 'x' AS x FROM tasks AS t",
        "SELECT t.size ^ 2 AS x FROM tasks AS t",
    ],
    "has_constructs_of_both": [
        "WITH a AS (MERGE INTO notes AS n USING tasks AS t ON n.task_id = t.task_id WHEN MATCHED THEN DELETE"
        " RETURNING n.task_id) SELECT a.task_id FROM a",
        "SELECT n.body FROM notes AS n TABLESAMPLE SYSTEM (1)",
        "SELECT t.lane, count(*) AS n FROM tasks AS t GROUP BY ROLLUP (t.lane)",
        "SELECT length(string => 'x') AS n",
        "SELECT CURRENT_TIMESTAMP AS x",
        "SELECT t.size FROM tasks AS t WHERE t.due_at < 'infinity'",
        "SELECT t.size FROM tasks AS t WHERE t.due_at > '-infinity'::timestamptz",
        "SELECT t.size FROM tasks AS t ORDER BY t.size FETCH FIRST 1 ROW WITH TIES",
        "SELECT t.size FROM tasks AS t WHERE t.task_id = ANY (ARRAY(SELECT n.task_id FROM notes AS n))",
        "DELETE FROM notes AS n WHERE n.task_id IN (SELECT t.task_id FROM tasks AS t LIMIT 5 FOR UPDATE SKIP LOCKED)",
        'SELECT n.body COLLATE "C" AS body FROM notes AS n',
    ],
    "casts_what_is_inexact": [
        "SELECT extract(epoch FROM t.due_at) AS x FROM tasks AS t",
        "SELECT sum(t.size) AS x FROM tasks AS t",
        "SELECT avg(t.size) * 2 AS x FROM tasks AS t",
    ],
    "casts_its_placeholders": [
        "SELECT n.body FROM notes AS n WHERE n.task_id = %(id)s",
        "SELECT n.body FROM notes AS n WHERE n.task_id = %(id)s::uuid OR n.task_id = %(id)s",
        "SELECT n.body FROM notes AS n LIMIT %(page)s",
    ],
    "orders_by_what_is_never_null": [
        "SELECT t.owner FROM tasks AS t ORDER BY t.owner",
        "SELECT n.task_id FROM tasks AS t LEFT JOIN notes AS n ON n.task_id = t.task_id ORDER BY n.task_id",
        "WITH x AS (SELECT t.owner FROM tasks AS t) SELECT x.owner FROM x ORDER BY x.owner",
        "SELECT x.size FROM (SELECT t.size, t.owner FROM tasks AS t) AS x ORDER BY x.owner",
        "SELECT x.a FROM unnest(%(a)s::text[]) AS x (a) ORDER BY x.a",
    ],
    "repeats_predicates_of_partial_indexes": [
        "SELECT t.size FROM tasks AS t WHERE t.owner = %(o)s::text",
        "SELECT t.size FROM tasks AS t WHERE t.owner = %(o)s::text AND t.status = %(s)s::text",
        "SELECT t.size FROM tasks AS t WHERE t.owner = %(o)s::text AND t.status IN ('OPEN')",
        "UPDATE tasks AS t SET size = 1 WHERE t.hash = ANY (%(h)s::bytea[])",
        "SELECT n.body FROM notes AS n WHERE EXISTS (SELECT 1 FROM tasks AS t WHERE t.owner = n.body)",
    ],
    "locks_plain_rows": [
        LOCKED.replace("FOR UPDATE", "FOR SHARE"),
        LOCKED.replace("FOR UPDATE", "FOR NO KEY UPDATE"),
        LOCKED.replace("SKIP LOCKED", "NOWAIT"),
        LOCKED.replace("SELECT t.lane", "SELECT DISTINCT t.lane"),
        LOCKED.replace("SELECT t.lane", "SELECT count(*) OVER () AS n, t.lane"),
        LOCKED.replace("ORDER BY", "GROUP BY t.lane, t.due_at, t.task_id ORDER BY"),
        LOCKED.replace("FROM tasks AS t\n", "FROM tasks AS t CROSS JOIN notes AS n\n"),
        "SELECT x.task_id FROM (SELECT t.task_id FROM tasks AS t WHERE t.lane = 1) AS x FOR UPDATE",
    ],
    "locks_in_key_order": [
        LOCKED.replace("t.lane = %(lane)s::smallint", "t.lane IN (1, 2)"),
        LOCKED.replace("ORDER BY t.due_at, t.task_id", "ORDER BY t.task_id"),
        LOCKED.replace("ORDER BY t.due_at, t.task_id", "ORDER BY t.due_at DESC, t.task_id DESC"),
        LOCKED.replace("ORDER BY t.due_at, t.task_id", ""),
        LOCKED.replace("LIMIT 50", ""),
        LOCKED.replace("LIMIT 50", "LIMIT %(page)s::bigint"),
        LOCKED.replace("AS MATERIALIZED", "AS"),
        "SELECT t.size FROM tasks AS t WHERE t.lane = 1 ORDER BY t.due_at LIMIT 5 FOR UPDATE SKIP LOCKED",
        "SELECT t.size FROM tasks AS t WHERE t.hash = %(h)s::bytea FOR UPDATE",
    ],
}

NIL = "00000000-0000-0000-0000-000000000000"
TABLE = "CREATE TABLE IF NOT EXISTS x (a UUID NOT NULL, b {}, CONSTRAINT x_pkey PRIMARY KEY (a){}){}"
GOOD_STEPS = {
    "a table": TABLE.format("TEXT NOT NULL DEFAULT 'x'", ", CONSTRAINT x_ck CHECK (b IN ('x', 'y'))", ""),
    "an index": "CREATE INDEX IF NOT EXISTS i ON tasks (lane, due_at DESC) WHERE status = 'OPEN'",
    "a column": "ALTER TABLE notes ADD COLUMN IF NOT EXISTS title TEXT NOT NULL DEFAULT ''",
    "a first row": f"INSERT INTO notes (task_id) VALUES ('{NIL}') ON CONFLICT (task_id) DO NOTHING",
    "a view": "CREATE OR REPLACE VIEW v AS SELECT n.body FROM notes AS n",
}
BAD_STEPS = {
    "is_one_statement": ["CREATE TABLE IF NOT EXISTS x (a TEXT); SELECT 1", "ALTER TABLE x CONFIGURE ZONE USING a = 1"],
    "may_be_run_again": [
        TABLE.format("TEXT", "", "").replace("IF NOT EXISTS", ""),
        "CREATE INDEX i ON tasks (lane)",
        "CREATE VIEW v AS SELECT n.body FROM notes AS n",
        "DROP INDEX tasks_hash_uq",
        "ALTER TABLE notes ADD COLUMN title TEXT",
        f"INSERT INTO notes (task_id) VALUES ('{NIL}')",
        "CREATE FUNCTION f() RETURNS TEXT LANGUAGE sql AS 'SELECT 1'",
        "CREATE SEQUENCE IF NOT EXISTS s",
        "CREATE TYPE t AS ENUM ('a')",
    ],
    "has_column_types_of_both": [
        TABLE.format(type_, "", "") for type_ in ("INT", "SERIAL", "STRING", "JSON", "VARCHAR(9)", "DATE")
    ],
    "has_constraints_of_both": [
        TABLE.format("TEXT REFERENCES notes (task_id)", "", ""),
        TABLE.format("TEXT UNIQUE", "", ""),
        TABLE.format("TEXT", ", CONSTRAINT x_uq UNIQUE (b)", ""),
        TABLE.format("TEXT", ", CONSTRAINT x_fk FOREIGN KEY (a) REFERENCES notes (task_id)", ""),
        TABLE.format("BIGINT GENERATED ALWAYS AS IDENTITY", "", ""),
        TABLE.format("UUID DEFAULT gen_random_uuid()", "", ""),
    ],
    "has_a_primary_key": [
        "CREATE TABLE IF NOT EXISTS x (a UUID NOT NULL)",
        "CREATE TABLE IF NOT EXISTS x (a UUID PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS x (a UUID, CONSTRAINT x_pkey PRIMARY KEY (a))",
    ],
    "has_tables_of_both": [
        TABLE.format("TEXT", "", " PARTITION BY HASH (a)"),
        TABLE.format("TEXT", "", " WITH (fillfactor = 70)"),
        TABLE.format("TEXT", "", "").replace("CREATE TABLE", "CREATE UNLOGGED TABLE"),
    ],
    "has_indexes_of_both": [
        "CREATE INDEX IF NOT EXISTS i ON tasks USING hash (lane)",
        "CREATE INDEX IF NOT EXISTS i ON tasks (lower(owner))",
        "CREATE INDEX IF NOT EXISTS i ON tasks (owner text_pattern_ops)",
        "CREATE INDEX IF NOT EXISTS i ON tasks (lane) WHERE due_at < now()",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON tasks (owner) NULLS NOT DISTINCT",
    ],
    "alters_what_both_can": [
        "ALTER TABLE notes ADD COLUMN IF NOT EXISTS title TEXT NOT NULL",
        "ALTER TABLE notes ADD COLUMN IF NOT EXISTS seen_at TIMESTAMPTZ DEFAULT now()",
        "ALTER TABLE notes ALTER COLUMN body TYPE UUID USING body::uuid",
        "ALTER TABLE notes ADD CONSTRAINT c CHECK (body <> '')",
    ],
    "lists_its_columns": ["CREATE OR REPLACE VIEW v AS SELECT * FROM notes AS n"],
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_good_statement_is_left_alone(text: str) -> None:
    assert lint(text, SCHEMA) == {}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in BAD.items() for text in texts])
def test_a_bad_statement_is_found(rule: str, text: str) -> None:
    assert rule in lint(text, SCHEMA)


@pytest.mark.parametrize("text", GOOD_STEPS.values(), ids=GOOD_STEPS)
def test_a_good_step_is_left_alone(text: str) -> None:
    assert lint_step(text, SCHEMA) == {}


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in BAD_STEPS.items() for text in texts])
def test_a_bad_step_is_found(rule: str, text: str) -> None:
    assert rule in lint_step(text, SCHEMA)


def test_every_rule_has_its_bad_example() -> None:
    assert {rule.__name__ for rule in RULES} <= BAD.keys()
    assert {rule.__name__ for rule in RULES_OF_STEPS} <= BAD_STEPS.keys()
