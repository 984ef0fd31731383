-- Executions and their history, as callers read them, and their cancellation.

-- name: get_execution
-- One execution with its job's words and the end of its latest attempt.
SELECT e.execution_id, e.job_id, e.endpoint, e.endpoint_type, e.idempotency_key, e.tick_at, e.status, e.input, e.output,
    e.error, e.attempt_count, e.max_attempts, e.run_at, e.started_at, e.completed_at, e.duration_ms, e.created_at
FROM execution_details AS e
WHERE e.execution_id = %(execution_id)s::uuid AND e.namespace = %(namespace)s::text;

-- name: list_executions_of_cron_job
-- A page of a cron job's executions, newest tick first.
SELECT e.execution_id, e.job_id, e.endpoint, e.endpoint_type, e.idempotency_key, e.tick_at, e.status, e.input, e.output,
    e.error, e.attempt_count, e.max_attempts, e.run_at, e.started_at, e.completed_at, e.duration_ms, e.created_at
FROM execution_details AS e
WHERE e.job_id = %(job_id)s::uuid AND e.namespace = %(namespace)s::text AND e.tick_at IS NOT NULL
    AND e.tick_at < %(before_tick_at)s::timestamptz
    AND (%(status)s::text IS NULL OR e.status = %(status)s::text)
ORDER BY e.tick_at DESC
LIMIT %(page)s::bigint;

-- name: list_attempts
-- A page of an execution's attempts, oldest first; the caller has checked the namespace.
SELECT a.execution_id, a.attempt_number, a.status, a.started_at, a.completed_at, a.duration_ms, a.output, a.error
FROM attempts AS a
WHERE a.execution_id = %(execution_id)s::uuid AND a.attempt_number > %(after_number)s::integer
ORDER BY a.attempt_number
LIMIT %(page)s::bigint;

-- name: list_execution_logs
-- A page of an execution's log rows, oldest first; the caller has checked the namespace.
SELECT l.attempt_number, l.seq, l.level, l.message, l.logged_at
FROM execution_logs AS l
WHERE l.execution_id = %(execution_id)s::uuid
    AND (l.attempt_number, l.seq) > (%(after_number)s::integer, %(after_seq)s::integer)
ORDER BY l.attempt_number, l.seq
LIMIT %(page)s::bigint;

-- name: cancel_execution
-- Only what waits can be cancelled. A queue row may stay behind: the claim drops it. The timer goes at once.
WITH c AS (
    UPDATE executions AS e
    SET status = 'CANCELLED', completed_at = now()
    WHERE e.execution_id = %(execution_id)s::uuid AND e.namespace = %(namespace)s::text
        AND e.status IN ('PENDING', 'QUEUED', 'RETRYING')
    RETURNING e.execution_id, e.lane, e.run_at
), t AS (
    DELETE FROM timers AS t
    USING c
    WHERE t.lane = c.lane AND t.fire_at = c.run_at AND t.execution_id = c.execution_id
    RETURNING t.execution_id
)
SELECT c.execution_id FROM c;
