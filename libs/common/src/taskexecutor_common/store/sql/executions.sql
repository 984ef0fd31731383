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
-- Only what waits can be cancelled. Its timer goes at once, and so does its queue row, that a queue which is held back may not
-- fill with what claims would only drop. The row's time is when the execution came to be or was to run. Left to the claim is
-- what was promoted late, and what somebody has locked: a claim that has the row waits for the execution, which is held here.
WITH c AS (
    UPDATE executions AS e
    SET status = 'CANCELLED', completed_at = now()
    WHERE e.execution_id = %(execution_id)s::uuid AND e.namespace = %(namespace)s::text
        AND e.status IN ('PENDING', 'QUEUED', 'RETRYING')
    RETURNING e.execution_id, e.queue, e.lane, e.priority, e.run_at, greatest(e.created_at, e.run_at) AS ready_at
), t AS (
    DELETE FROM timers AS t
    USING c
    WHERE t.lane = c.lane AND t.fire_at = c.run_at AND t.execution_id = c.execution_id
    -- postgres: WHERE t.lane = ANY (ARRAY[c.lane]) AND t.fire_at = ANY (ARRAY[c.run_at]) AND t.execution_id = ANY (ARRAY[c.execution_id])
    RETURNING t.execution_id
), queued AS MATERIALIZED (
    SELECT q.queue, q.lane, q.priority, q.ready_at, q.execution_id
    -- postgres: SELECT q.place
    FROM c
    CROSS JOIN LATERAL (
        SELECT r.queue, r.lane, r.priority, r.ready_at, r.execution_id
        -- postgres: SELECT r.ctid AS place
        FROM ready_queue AS r
        WHERE r.queue = c.queue AND r.lane = c.lane AND r.priority = c.priority AND r.ready_at = c.ready_at
            AND r.execution_id = c.execution_id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS q
), gone AS (
    DELETE FROM ready_queue AS r
    USING queued AS q
    -- postgres: WHERE r.ctid = ANY (ARRAY(SELECT q.place FROM queued AS q))
    WHERE (r.queue, r.lane, r.priority, r.ready_at, r.execution_id) = (q.queue, q.lane, q.priority, q.ready_at, q.execution_id)
    -- postgres:
    RETURNING r.execution_id
)
SELECT c.execution_id FROM c;
