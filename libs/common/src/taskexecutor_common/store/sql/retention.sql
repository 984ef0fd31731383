-- Forgetting finished work after its time.

-- name: shortest_retention
-- The earliest that any namespace lets go, in seconds.
SELECT coalesce(min(coalesce(n.retention_sec, %(default_sec)s::bigint)), %(default_sec)s::bigint) AS seconds
FROM namespaces AS n;

-- name: prune_executions
-- One bounded step of the pruner's walk along the primary key of one lane: looks at 2,000 executions and deletes those that
-- ended long enough ago, with their attempts and logs, and with their job where it fires once. Carrying the last id forward
-- is what keeps a step from reading again what earlier steps deleted.
WITH looked_at AS MATERIALIZED (
    SELECT e.execution_id, e.namespace, e.completed_at
    FROM executions AS e
    WHERE e.execution_id > %(after_id)s::uuid AND e.execution_id < %(before_id)s::uuid
    ORDER BY e.execution_id
    LIMIT 2000
), old AS MATERIALIZED (
    SELECT s.execution_id
    FROM looked_at AS s
    JOIN namespaces AS n ON n.namespace = s.namespace
    WHERE s.completed_at IS NOT NULL
        AND s.completed_at < now() - coalesce(n.retention_sec, %(default_sec)s::bigint) * interval '1 second'
), gone_attempts AS (
    DELETE FROM attempts AS a USING old AS o WHERE a.execution_id = o.execution_id RETURNING a.execution_id
), gone_logs AS (
    DELETE FROM execution_logs AS l USING old AS o WHERE l.execution_id = o.execution_id RETURNING l.execution_id
), gone_jobs AS (
    DELETE FROM jobs AS j USING old AS o WHERE j.job_id = o.execution_id RETURNING j.job_id
), gone AS (
    DELETE FROM executions AS e USING old AS o WHERE e.execution_id = o.execution_id RETURNING e.execution_id
)
SELECT (SELECT s.execution_id FROM looked_at AS s ORDER BY s.execution_id DESC LIMIT 1) AS last_id,
    (SELECT count(*) FROM looked_at) AS looked_at, (SELECT count(*) FROM gone) AS pruned;

-- name: prune_cron_jobs
-- Cron jobs that were retired long enough ago and have no execution left.
WITH old AS MATERIALIZED (
    SELECT c.job_id
    FROM cron_jobs AS c
    JOIN jobs AS j ON j.job_id = c.job_id
    JOIN namespaces AS n ON n.namespace = j.namespace
    WHERE c.status = 'RETIRED'
        AND c.retired_at < now() - coalesce(n.retention_sec, %(default_sec)s::bigint) * interval '1 second'
        AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.job_id = c.job_id AND e.tick_at IS NOT NULL)
    ORDER BY c.job_id
    LIMIT 500
), gone_jobs AS (
    DELETE FROM jobs AS j USING old AS o WHERE j.job_id = o.job_id RETURNING j.job_id
), gone AS (
    DELETE FROM cron_jobs AS c USING old AS o WHERE c.job_id = o.job_id AND c.status = 'RETIRED' RETURNING c.job_id
)
SELECT count(*) AS pruned FROM gone;

-- name: set_retention
-- Makes a namespace if need be, and says how long it keeps finished work (NULL: as the scheduler's setting says).
INSERT INTO namespaces (namespace, retention_sec)
VALUES (%(namespace)s::text, %(retention_sec)s::bigint)
ON CONFLICT (namespace) DO UPDATE SET retention_sec = excluded.retention_sec
RETURNING namespace, retention_sec, created_at;

-- name: ensure_namespace
INSERT INTO namespaces (namespace) VALUES (%(namespace)s::text) ON CONFLICT (namespace) DO NOTHING;

-- name: list_namespaces
SELECT n.namespace, n.retention_sec, n.created_at FROM namespaces AS n ORDER BY n.namespace;
