-- Instances, their heartbeats, and what is taken back from the dead.

-- name: beat
-- An instance says that it lives. One that was declared DEAD may come back: what it held is gone, its guards see to that.
INSERT INTO region_heartbeats (region, component, instance_id, address, status, metadata)
VALUES (%(region)s::text, %(component)s::text, %(instance_id)s::uuid, %(address)s::text, %(status)s::text, %(metadata)s::jsonb)
ON CONFLICT (region, component, instance_id) DO UPDATE
SET last_beat_at = now(), status = excluded.status, address = excluded.address, metadata = excluded.metadata
RETURNING last_beat_at;

-- name: list_live_instances
-- Peers to hint: instances of a component that beat lately.
SELECT h.instance_id, h.component, h.address, h.status
FROM region_heartbeats AS h
WHERE h.region = %(region)s::text AND h.component = %(component)s::text AND h.status = 'ALIVE'
    AND h.last_beat_at > now() - %(dead_after_ms)s::bigint * interval '1 millisecond'
ORDER BY h.instance_id;

-- name: bury_silent_instances
-- The reclaimer declares instances dead that missed their beats.
UPDATE region_heartbeats AS h
SET status = 'DEAD'
WHERE h.status IN ('ALIVE', 'DRAINING') AND h.last_beat_at < now() - %(dead_after_ms)s::bigint * interval '1 millisecond'
RETURNING h.component, h.instance_id;

-- name: forget_dead_instances
-- Keeps the heartbeat table small: dead instances that hold nothing are dropped after a day.
DELETE FROM region_heartbeats AS h
WHERE h.status = 'DEAD' AND h.last_beat_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.worker_id = h.instance_id)
RETURNING h.instance_id;

-- name: next_reclaim
-- When the reclaimer must look again: the earliest moment at which a live instance could be dead or a lease be over.
SELECT (extract(epoch FROM min(x.at) - clock_timestamp()) * 1000)::double precision AS due_in_ms
FROM (
    SELECT min(h.last_beat_at) + %(dead_after_ms)s::bigint * interval '1 millisecond' AS at
    FROM region_heartbeats AS h WHERE h.status IN ('ALIVE', 'DRAINING')
    UNION ALL
    SELECT min(l.expires_at) + %(slack_ms)s::bigint * interval '1 millisecond' AS at FROM leases AS l
) AS x;

-- name: reclaim_leases
-- Takes back what dead instances held and what outlived its lease: an attempt row says WORKER_LOST, and the execution
-- goes to a queue again or has FAILED when its attempts are spent. The guard is the claim that is broken.
WITH lost AS MATERIALIZED (
    SELECT l.worker_id, l.execution_id
    -- postgres: SELECT l.ctid AS place
    FROM leases AS l
    WHERE l.expires_at < now() - %(slack_ms)s::bigint * interval '1 millisecond'
        OR NOT EXISTS (
            SELECT 1 FROM region_heartbeats AS h WHERE h.instance_id = l.worker_id AND h.status IN ('ALIVE', 'DRAINING'))
    ORDER BY l.worker_id, l.execution_id
    LIMIT 200
    FOR UPDATE OF l SKIP LOCKED
), freed AS (
    DELETE FROM leases AS l
    USING lost AS x
    -- postgres: WHERE l.ctid = ANY (ARRAY(SELECT x.place FROM lost AS x))
    WHERE l.worker_id = x.worker_id AND l.execution_id = x.execution_id
    -- postgres:
    RETURNING l.worker_id, l.execution_id, l.attempt_number, l.counted_for
), taken AS (
    UPDATE executions AS e
    SET status = CASE WHEN e.attempt_count >= e.max_attempts THEN 'FAILED' ELSE 'RETRYING' END, worker_id = NULL,
        run_at = CASE WHEN e.attempt_count >= e.max_attempts THEN e.run_at ELSE now() END,
        completed_at = CASE WHEN e.attempt_count >= e.max_attempts THEN now() END,
        duration_ms = NULL
    FROM freed AS f
    WHERE e.execution_id = f.execution_id AND e.status = 'RUNNING' AND e.worker_id = f.worker_id
    -- postgres: WHERE e.execution_id = ANY (ARRAY[f.execution_id]) AND e.status = 'RUNNING' AND e.worker_id = f.worker_id
        AND e.attempt_count = f.attempt_number
    RETURNING e.execution_id, e.status, e.lane, e.queue, e.priority, e.region, e.started_at, f.worker_id, f.attempt_number
), noted AS (
    INSERT INTO attempts (execution_id, attempt_number, region, worker_id, status, started_at, completed_at, error)
    SELECT t.execution_id, t.attempt_number, t.region, t.worker_id, 'FAILED', t.started_at, now(), %(error)s::jsonb
    FROM taken AS t
    ON CONFLICT (execution_id, attempt_number) DO NOTHING
    RETURNING execution_id
), logged AS (
    INSERT INTO execution_logs (execution_id, attempt_number, seq, region, level, message)
    SELECT t.execution_id, t.attempt_number, 1, t.region,
        CASE WHEN t.status = 'FAILED' THEN 'ERROR' ELSE 'WARN' END, %(log_message)s::text
    FROM taken AS t
    ON CONFLICT (execution_id, attempt_number, seq) DO NOTHING
    RETURNING execution_id
), uncounted AS (
    UPDATE endpoint_flow AS f
    SET in_flight = f.in_flight - x.executions
    FROM (
        SELECT freed.counted_for, count(*)::integer AS executions FROM freed WHERE freed.counted_for IS NOT NULL GROUP BY freed.counted_for
    ) AS x
    WHERE f.endpoint_id = x.counted_for
    RETURNING f.endpoint_id
), again AS (
    INSERT INTO ready_queue (queue, lane, priority, ready_at, execution_id)
    SELECT t.queue, t.lane, t.priority, now(), t.execution_id FROM taken AS t WHERE t.status = 'RETRYING'
    RETURNING execution_id
)
SELECT t.execution_id, t.queue, t.status, t.worker_id, t.attempt_number FROM taken AS t;
