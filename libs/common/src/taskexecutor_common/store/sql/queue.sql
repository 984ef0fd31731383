-- The claimable set: waiting executions by queue, their claim, and the record of what became of them.

-- name: claim_executions
-- The claimer takes up to `quotas[i]` executions of `queues[i]` under leases of this worker, oldest and most urgent first.
-- LATERAL with a limit per queue: each queue is one short walk of the primary key, however long its neighbours are.
-- A cancelled execution may have left its queue row: the status guard drops it here.
WITH wanted AS MATERIALIZED (
    SELECT w.queue, w.quota
    FROM unnest(%(queues)s::uuid[], %(quotas)s::bigint[]) AS w (queue, quota)
), picked AS MATERIALIZED (
    SELECT p.queue, p.lane, p.priority, p.ready_at, p.execution_id
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT r.queue, r.lane, r.priority, r.ready_at, r.execution_id
        FROM ready_queue AS r
        WHERE r.queue = w.queue
        ORDER BY r.lane, r.priority, r.ready_at, r.execution_id
        LIMIT w.quota
        FOR UPDATE SKIP LOCKED
    ) AS p
), gone AS (
    DELETE FROM ready_queue AS r
    USING picked AS p
    WHERE r.queue = p.queue AND r.lane = p.lane AND r.priority = p.priority
        AND r.ready_at = p.ready_at AND r.execution_id = p.execution_id
    RETURNING r.execution_id, r.ready_at
), run AS (
    UPDATE executions AS e
    SET status = 'RUNNING', worker_id = %(worker_id)s::uuid, started_at = now(), attempt_count = e.attempt_count + 1,
        config_revision_id = coalesce(e.config_revision_id, (
            SELECT c.revision_id FROM configs AS c WHERE c.namespace = e.namespace AND c.name = e.config))
    FROM gone AS g
    WHERE e.execution_id = g.execution_id AND e.status IN ('PENDING', 'QUEUED', 'RETRYING')
    RETURNING e.execution_id, e.job_id, e.namespace, e.queue, e.endpoint_revision, e.config_revision_id, e.timeout_ms,
        e.attempt_count, e.max_attempts, e.run_at, coalesce(e.tick_at, e.created_at) AS scheduled_at, g.ready_at
), held AS (
    INSERT INTO leases (worker_id, execution_id, attempt_number, expires_at)
    SELECT %(worker_id)s::uuid, run.execution_id, run.attempt_count,
        now() + (run.timeout_ms + %(grace_ms)s::bigint) * interval '1 millisecond'
    FROM run
    RETURNING execution_id
)
SELECT run.execution_id, run.job_id, run.namespace, run.queue, run.endpoint_revision, run.config_revision_id,
    run.attempt_count, run.max_attempts, coalesce(j.run_at, run.scheduled_at) AS scheduled_at,
    (extract(epoch FROM now() - run.ready_at) * 1000)::double precision AS waited_ms,
    (extract(epoch FROM now() - run.run_at) * 1000)::double precision AS late_ms,
    j.version AS job_version, j.input
FROM run
JOIN jobs AS j ON j.job_id = run.job_id;

-- name: find_held_executions
-- After a claim whose answer was lost: what is RUNNING in this worker's name, to be delivered if it is not known here.
SELECT e.execution_id, e.job_id, e.namespace, e.queue, e.endpoint_revision, e.config_revision_id,
    e.attempt_count, e.max_attempts, coalesce(j.run_at, e.tick_at, e.created_at) AS scheduled_at,
    0::double precision AS waited_ms,
    (extract(epoch FROM now() - e.run_at) * 1000)::double precision AS late_ms,
    j.version AS job_version, j.input
FROM leases AS l
JOIN executions AS e ON e.execution_id = l.execution_id AND e.status = 'RUNNING'
    AND e.worker_id = l.worker_id AND e.attempt_count = l.attempt_number
JOIN jobs AS j ON j.job_id = e.job_id
WHERE l.worker_id = %(worker_id)s::uuid AND NOT (l.execution_id = ANY (%(known)s::uuid[]))
ORDER BY l.execution_id
LIMIT 1000;

-- name: finalise_executions
-- The completer writes how attempts ended. The guard is the claim itself (RUNNING, this worker, this attempt): a worker
-- that lost its claim gets no row back and changes nothing.
WITH r AS MATERIALIZED (
    SELECT x.execution_id, x.attempt_number, x.attempt_status, x.next_status, x.retry_delay_ms, x.duration_ms,
        x.output, x.error, x.log_level, x.log_message
    FROM jsonb_to_recordset(%(results)s::jsonb) AS x (execution_id uuid, attempt_number integer, attempt_status text,
        next_status text, retry_delay_ms bigint, duration_ms bigint, output jsonb, error jsonb, log_level text, log_message text)
), done AS (
    UPDATE executions AS e
    SET status = r.next_status, worker_id = NULL, duration_ms = r.duration_ms,
        run_at = CASE WHEN r.next_status = 'RETRYING' THEN now() + r.retry_delay_ms * interval '1 millisecond' ELSE e.run_at END,
        completed_at = CASE WHEN r.next_status = 'RETRYING' THEN NULL ELSE now() END
    FROM r
    WHERE e.execution_id = r.execution_id AND e.status = 'RUNNING'
        AND e.worker_id = %(worker_id)s::uuid AND e.attempt_count = r.attempt_number
    RETURNING e.execution_id, e.status, e.run_at, e.lane, e.queue, e.priority, e.region, e.started_at,
        r.attempt_number, r.attempt_status, r.duration_ms, r.output, r.error, r.log_level, r.log_message
), freed AS (
    DELETE FROM leases AS l
    USING done AS d
    WHERE l.worker_id = %(worker_id)s::uuid AND l.execution_id = d.execution_id
    RETURNING l.execution_id
), noted AS (
    INSERT INTO attempts (execution_id, attempt_number, region, worker_id, status, started_at, completed_at, duration_ms, output, error)
    SELECT d.execution_id, d.attempt_number, d.region, %(worker_id)s::uuid, d.attempt_status, d.started_at, now(),
        d.duration_ms, d.output, d.error
    FROM done AS d
    ON CONFLICT (execution_id, attempt_number) DO NOTHING
    RETURNING execution_id
), logged AS (
    INSERT INTO execution_logs (execution_id, attempt_number, seq, region, level, message)
    SELECT d.execution_id, d.attempt_number, 1, d.region, d.log_level, d.log_message
    FROM done AS d
    WHERE d.log_message IS NOT NULL
    ON CONFLICT (execution_id, attempt_number, seq) DO NOTHING
    RETURNING execution_id
), later AS (
    INSERT INTO timers (lane, fire_at, execution_id, queue, priority)
    SELECT d.lane, d.run_at, d.execution_id, d.queue, d.priority
    FROM done AS d
    WHERE d.status = 'RETRYING'
    RETURNING execution_id
)
SELECT d.execution_id, d.attempt_number, d.status, d.run_at FROM done AS d;

-- name: find_recorded_attempts
-- After a finalise whose answer was lost: which of these attempts this worker has recorded.
SELECT a.execution_id, a.attempt_number
FROM attempts AS a
JOIN unnest(%(execution_ids)s::uuid[], %(attempt_numbers)s::integer[]) AS x (execution_id, attempt_number)
    ON a.execution_id = x.execution_id AND a.attempt_number = x.attempt_number
WHERE a.worker_id = %(worker_id)s::uuid;

-- name: find_waiting_queues
-- The dispatcher's periodic look at which queues have work: a loose scan, one index probe per queue.
WITH RECURSIVE walk (queue) AS (
    (SELECT r.queue FROM ready_queue AS r ORDER BY r.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT r.queue FROM ready_queue AS r WHERE r.queue > w.queue ORDER BY r.queue LIMIT 1)
    FROM walk AS w
    WHERE w.queue IS NOT NULL
)
SELECT w.queue FROM walk AS w WHERE w.queue IS NOT NULL;
