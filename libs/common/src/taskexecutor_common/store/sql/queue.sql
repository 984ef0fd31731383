-- The claimable set: waiting executions by queue, their claim, and the record of what became of them.

-- name: claim_executions
-- The claimer takes up to `quotas[i]` executions of `queues[i]` under leases of this worker, oldest and most urgent first.
-- LATERAL with a limit per queue: each queue is one short walk of the primary key, however long its neighbours are.
-- The walk begins at the lane that the claimer says, so that a backlog in the low lanes does not hold up the high ones.
-- A cancelled execution may have left its queue row: the status guard drops it here.
-- What was promoted ahead is claimed ahead: its attempt starts, and its lease counts, from when it is ready. The clock is read
-- once a row: the difference of two readings would make what waits early by whatever came between them.
-- An endpoint with limits is claimed for by one dispatcher at a time, which holds the row that counts; the others pass it by.
WITH gates AS MATERIALIZED (
    SELECT f.endpoint_id, f.max_in_flight, f.in_flight, f.circuit,
        f.paused_at IS NULL AND coalesce(f.closed_until <= now(), true) AS is_open,
        least(f.burst, f.tokens + extract(epoch FROM now() - f.tokens_at)::double precision * f.rate_per_sec) AS tokens
    FROM endpoint_flow AS f
    WHERE f.endpoint_id = ANY (%(queues)s::uuid[]) AND f.is_limited
    ORDER BY f.endpoint_id
    LIMIT 100
    FOR UPDATE SKIP LOCKED
), wanted AS MATERIALIZED (
    SELECT w.queue, w.first_lane, least(w.quota, CASE WHEN f.is_limited THEN greatest(0, least(
        g.max_in_flight - g.in_flight, floor(g.tokens), CASE WHEN g.circuit = 'OPEN' THEN 1 - g.in_flight END, w.quota
    ))::bigint END) AS quota
    FROM unnest(%(queues)s::uuid[], %(quotas)s::bigint[], %(first_lanes)s::smallint[]) AS w (queue, quota, first_lane)
    LEFT JOIN endpoint_flow AS f ON f.endpoint_id = w.queue
    LEFT JOIN gates AS g ON g.endpoint_id = w.queue
    WHERE CASE WHEN f.is_limited THEN g.is_open
        ELSE f.paused_at IS NULL AND coalesce(f.closed_until <= now(), true) END
), picked AS MATERIALIZED (
    SELECT p.queue, p.lane, p.priority, p.ready_at, p.execution_id
    -- postgres: SELECT p.place
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT r.queue, r.lane, r.priority, r.ready_at, r.execution_id
        -- postgres: SELECT r.ctid AS place
        FROM ready_queue AS r
        WHERE r.queue = w.queue AND r.lane >= w.first_lane
        ORDER BY r.lane, r.priority, r.ready_at, r.execution_id
        LIMIT w.quota
        FOR UPDATE SKIP LOCKED
    ) AS p
), gone AS (
    DELETE FROM ready_queue AS r
    USING picked AS p
    -- postgres: WHERE r.ctid = ANY (ARRAY(SELECT p.place FROM picked AS p))
    WHERE (r.queue, r.lane, r.priority, r.ready_at, r.execution_id) = (p.queue, p.lane, p.priority, p.ready_at, p.execution_id)
    -- postgres:
    RETURNING r.execution_id, r.ready_at
), run AS (
    UPDATE executions AS e
    SET status = 'RUNNING', worker_id = %(worker_id)s::uuid, started_at = greatest(now(), g.ready_at), attempt_count = e.attempt_count + 1,
        config_revision_id = coalesce(e.config_revision_id, (
            SELECT c.revision_id FROM configs AS c WHERE c.namespace = e.namespace AND c.name = e.config))
    FROM gone AS g
    WHERE e.execution_id = g.execution_id AND e.status IN ('PENDING', 'QUEUED', 'RETRYING')
    -- postgres: WHERE e.execution_id = ANY (ARRAY[g.execution_id]) AND e.status IN ('PENDING', 'QUEUED', 'RETRYING')
    RETURNING e.execution_id, e.job_id, e.namespace, e.queue, e.endpoint_revision, e.config_revision_id, e.timeout_ms,
        e.attempt_count, e.max_attempts, e.run_at, coalesce(e.tick_at, e.created_at) AS scheduled_at, g.ready_at
), held AS (
    INSERT INTO leases (worker_id, execution_id, attempt_number, expires_at, counted_for)
    SELECT %(worker_id)s::uuid, run.execution_id, run.attempt_count,
        greatest(now(), run.ready_at) + (run.timeout_ms + %(grace_ms)s::bigint) * interval '1 millisecond', g.endpoint_id
    FROM run
    LEFT JOIN gates AS g ON g.endpoint_id = run.queue
    RETURNING execution_id, counted_for
), counted AS (
    UPDATE endpoint_flow AS f
    SET in_flight = g.in_flight + h.executions, tokens = coalesce(g.tokens - h.executions, 0), tokens_at = greatest(f.tokens_at, now())
    FROM gates AS g
    JOIN (
        SELECT held.counted_for, count(*)::integer AS executions FROM held WHERE held.counted_for IS NOT NULL GROUP BY held.counted_for
    ) AS h ON h.counted_for = g.endpoint_id
    WHERE f.endpoint_id = g.endpoint_id
    -- postgres: WHERE f.endpoint_id = ANY (ARRAY[g.endpoint_id])
    RETURNING f.endpoint_id
)
SELECT run.execution_id, run.job_id, run.namespace, run.queue, run.endpoint_revision, run.config_revision_id,
    run.attempt_count, run.max_attempts, coalesce(j.run_at, run.scheduled_at) AS scheduled_at,
    (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS claimed_at_ms,
    (extract(epoch FROM run.ready_at) * 1000)::double precision AS ready_at_ms,
    (extract(epoch FROM now() - run.run_at) * 1000)::double precision AS late_ms,
    j.version AS job_version, j.input
FROM run
JOIN jobs AS j ON j.job_id = run.job_id;
-- postgres: JOIN jobs AS j ON j.job_id = ANY (ARRAY[run.job_id]);

-- name: find_held_executions
-- After a claim whose answer was lost: what is RUNNING in this worker's name, to be delivered if it is not known here.
SELECT e.execution_id, e.job_id, e.namespace, e.queue, e.endpoint_revision, e.config_revision_id,
    e.attempt_count, e.max_attempts, coalesce(j.run_at, e.tick_at, e.created_at) AS scheduled_at,
    (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS claimed_at_ms,
    (extract(epoch FROM e.started_at) * 1000)::double precision AS ready_at_ms,
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
        x.output, x.error, x.log_level, x.log_message, x.is_receivers_fault, x.close_ms, x.is_counted
    FROM jsonb_to_recordset(%(results)s::jsonb) AS x (execution_id uuid, attempt_number integer, attempt_status text,
        next_status text, retry_delay_ms bigint, duration_ms bigint, output jsonb, error jsonb, log_level text, log_message text,
        is_receivers_fault boolean, close_ms bigint, is_counted boolean)
), done AS (
    UPDATE executions AS e
    SET status = r.next_status, worker_id = NULL, duration_ms = r.duration_ms,
        max_attempts = e.max_attempts + CASE WHEN r.is_counted THEN 0 ELSE 1 END,
        run_at = CASE WHEN r.next_status = 'RETRYING' THEN now() + r.retry_delay_ms * interval '1 millisecond' ELSE e.run_at END,
        completed_at = CASE WHEN r.next_status = 'RETRYING' THEN NULL ELSE now() END
    FROM r
    WHERE e.execution_id = r.execution_id AND e.status = 'RUNNING'
    -- postgres: WHERE e.execution_id = ANY (ARRAY[r.execution_id]) AND e.status = 'RUNNING'
        AND e.worker_id = %(worker_id)s::uuid AND e.attempt_count = r.attempt_number
    RETURNING e.execution_id, e.status, e.run_at, e.lane, e.queue, e.priority, e.region, e.started_at,
        r.attempt_number, r.attempt_status, r.duration_ms, r.output, r.error, r.log_level, r.log_message,
        r.is_receivers_fault, r.close_ms
), freed AS (
    -- By a list and not by a join, which would read all leases of the worker when it believes that there are few.
    DELETE FROM leases AS l
    WHERE l.worker_id = %(worker_id)s::uuid AND l.execution_id = ANY (ARRAY(SELECT d.execution_id FROM done AS d))
    RETURNING l.counted_for
), room AS MATERIALIZED (
    SELECT x.counted_for, count(*)::integer AS freed FROM freed AS x WHERE x.counted_for IS NOT NULL GROUP BY x.counted_for
), news AS MATERIALIZED (
    -- What the batch says of each endpoint.
    SELECT d.queue, coalesce((SELECT x.freed FROM room AS x WHERE x.counted_for = d.queue), 0) AS freed, max(d.close_ms) AS close_ms,
        (count(*) FILTER (WHERE d.attempt_status = 'SUCCESS'))::integer AS successes,
        (count(*) FILTER (WHERE d.is_receivers_fault))::integer AS failures,
        max(d.started_at) FILTER (WHERE d.attempt_status = 'SUCCESS') AS success_sent_at,
        max(d.started_at) FILTER (WHERE d.is_receivers_fault) AS failure_sent_at
    FROM done AS d
    GROUP BY d.queue
), flows AS MATERIALIZED (
    -- Locked in the order of their ids, so that two dispatchers with the same endpoints wait in line and not for each other.
    SELECT f.endpoint_id, f.circuit, f.failure_rate, f.minimum_attempts, n.freed, n.successes, n.failures,
        f.circuit = 'OPEN' AND coalesce(n.success_sent_at >= f.closed_until, false) AS has_probe_arrived,
        f.circuit = 'OPEN' AND coalesce(n.failure_sent_at >= f.closed_until, false) AS has_probe_failed,
        now() + n.close_ms * interval '1 millisecond' AS rest_until, now() + f.open_ms * interval '1 millisecond' AS circuit_until,
        f.window_started_at > now() - f.window_ms * interval '1 millisecond' AS is_same_window, f.window_attempts, f.window_failures
    FROM news AS n
    JOIN endpoint_flow AS f ON f.endpoint_id = n.queue
    -- postgres: JOIN endpoint_flow AS f ON f.endpoint_id = ANY (ARRAY[n.queue])
    WHERE f.is_limited OR n.freed > 0 OR n.close_ms IS NOT NULL
    ORDER BY n.queue
    FOR UPDATE OF f
), sums AS (
    SELECT x.endpoint_id, x.circuit = 'OPEN' AS was_open, x.has_probe_arrived, x.has_probe_failed, x.failure_rate,
        x.minimum_attempts, x.freed, x.rest_until, x.circuit_until, x.failures, x.is_same_window,
        CASE WHEN x.is_same_window THEN x.window_attempts ELSE 0 END + x.successes + x.failures AS attempts,
        CASE WHEN x.is_same_window THEN x.window_failures ELSE 0 END + x.failures AS failed
    FROM flows AS x
), verdicts AS MATERIALIZED (
    -- Of an open circuit the probe decides, which was sent after its time was over; what was sent before, however late it ends,
    -- says nothing.
    SELECT s.endpoint_id, s.freed, s.rest_until, s.circuit_until, s.is_same_window, s.attempts, s.failed,
        s.has_probe_arrived AND NOT s.has_probe_failed AS heals,
        CASE WHEN s.was_open THEN s.has_probe_failed
            ELSE s.attempts >= s.minimum_attempts AND s.failed >= s.failure_rate * s.attempts AND s.failures > 0 END AS trips
    FROM sums AS s
), judged AS (
    UPDATE endpoint_flow AS f
    SET in_flight = f.in_flight - v.freed,
        circuit = CASE WHEN v.trips THEN 'OPEN' WHEN v.heals THEN 'CLOSED' ELSE f.circuit END,
        window_started_at = CASE WHEN v.is_same_window AND NOT v.heals THEN f.window_started_at ELSE now() END,
        window_attempts = CASE WHEN v.trips OR v.heals THEN 0 ELSE v.attempts END,
        window_failures = CASE WHEN v.trips OR v.heals THEN 0 ELSE v.failed END,
        -- Whoever closes it the longest is who has closed it.
        closed_until = greatest(f.closed_until, v.rest_until, CASE WHEN v.trips THEN v.circuit_until END),
        closed_by = CASE greatest(f.closed_until, v.rest_until, CASE WHEN v.trips THEN v.circuit_until END)
            WHEN f.closed_until THEN f.closed_by WHEN v.rest_until THEN 'RETRY_AFTER' WHEN v.circuit_until THEN 'CIRCUIT' END
    FROM verdicts AS v
    WHERE f.endpoint_id = v.endpoint_id
    -- postgres: WHERE f.endpoint_id = ANY (ARRAY[v.endpoint_id])
    RETURNING f.endpoint_id
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
SELECT d.execution_id, d.attempt_number, d.status, d.run_at, (SELECT x.counted_for FROM room AS x WHERE x.counted_for = d.queue) AS counted_for,
    CASE WHEN d.close_ms IS NOT NULL THEN d.queue END AS closed, d.close_ms
FROM done AS d;

-- name: find_recorded_attempts
-- After a finalise that did not answer all: which of these attempts this worker has recorded. The reclaimer, too, records in
-- its name; what a lost worker's attempt took nobody knows.
SELECT a.execution_id, a.attempt_number
FROM attempts AS a
JOIN unnest(%(execution_ids)s::uuid[], %(attempt_numbers)s::integer[]) AS x (execution_id, attempt_number)
    ON a.execution_id = x.execution_id AND a.attempt_number = x.attempt_number
WHERE a.worker_id = %(worker_id)s::uuid AND a.duration_ms IS NOT NULL;

-- name: find_waiting_queues
-- The dispatcher's periodic look at which queues have work and when they may send: a loose scan, one index probe per queue.
WITH RECURSIVE walk (queue) AS (
    (SELECT r.queue FROM ready_queue AS r ORDER BY r.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT r.queue FROM ready_queue AS r WHERE r.queue > w.queue ORDER BY r.queue LIMIT 1)
    FROM walk AS w
    WHERE w.queue IS NOT NULL
)
SELECT w.queue, coalesce(g.is_limited, false) AS is_limited, CASE WHEN g.endpoint_id IS NULL THEN 0 ELSE g.opens_in_ms END AS opens_in_ms
FROM walk AS w
LEFT JOIN endpoint_gates AS g ON g.endpoint_id = w.queue
WHERE w.queue IS NOT NULL;

-- name: look_at_queues
-- The same for some queues with limits, after a claim that got less from them than it asked for.
SELECT g.endpoint_id AS queue, g.is_limited, g.opens_in_ms
FROM endpoint_gates AS g
WHERE g.endpoint_id = ANY (%(queues)s::uuid[])
    -- Not EXISTS, which may be turned round: then all that waits is read to see whose it is.
    AND (SELECT r.lane FROM ready_queue AS r WHERE r.queue = g.endpoint_id ORDER BY r.queue, r.lane LIMIT 1) IS NOT NULL;
