-- What waits for its time: one-shot jobs that are not due, and retries.

-- name: promote_timers
-- The promoter moves what is due within `ahead_ms` to the ready queue, oldest first; `ready_at` says when it may be sent.
-- Two promoters share the work by SKIP LOCKED.
-- A RETRYING execution stays RETRYING while it waits to be claimed; a cancelled one is dropped by the claim. So is one that is
-- being cancelled, which is passed by: whoever cancels holds the execution and waits for its timer, and to wait here for the
-- execution would be a deadlock. Should the cancelling fail, it stays PENDING, which is claimed as well.
-- The last row, without a queue, is the lane's next timer: it saves the promoter another look.
WITH due AS MATERIALIZED (
    SELECT t.lane, t.fire_at, t.execution_id
    -- postgres: SELECT t.ctid AS place
    FROM timers AS t
    WHERE t.lane = %(lane)s::smallint AND t.fire_at <= now() + %(ahead_ms)s::bigint * interval '1 millisecond'
    ORDER BY t.lane, t.fire_at, t.execution_id
    LIMIT 500
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM timers AS t
    USING due AS d
    -- postgres: WHERE t.ctid = ANY (ARRAY(SELECT d.place FROM due AS d))
    WHERE t.lane = d.lane AND t.fire_at = d.fire_at AND t.execution_id = d.execution_id
    -- postgres:
    RETURNING t.queue, t.lane, t.priority, t.fire_at, t.execution_id
), moved AS (
    INSERT INTO ready_queue (queue, lane, priority, ready_at, execution_id)
    SELECT g.queue, g.lane, g.priority, greatest(now(), g.fire_at), g.execution_id FROM gone AS g
    RETURNING queue, execution_id
), free AS MATERIALIZED (
    SELECT x.execution_id
    FROM moved AS m
    CROSS JOIN LATERAL (
        SELECT e.execution_id
        FROM executions AS e
        WHERE e.execution_id = m.execution_id AND e.status = 'PENDING'
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS x
), shown AS (
    UPDATE executions AS e
    SET status = 'QUEUED'
    FROM free AS x
    WHERE e.execution_id = x.execution_id AND e.status = 'PENDING'
    -- postgres: WHERE e.execution_id = ANY (ARRAY[x.execution_id]) AND e.status = 'PENDING'
    RETURNING e.execution_id
)
SELECT m.queue, count(*) AS moved, NULL::timestamptz AS next_at, NULL::double precision AS next_in_ms
FROM moved AS m
GROUP BY m.queue
UNION ALL
SELECT
    NULL,
    0,
    n.fire_at,
    (extract(epoch FROM n.fire_at - clock_timestamp()) * 1000)::double precision
FROM (
    SELECT t.fire_at
    FROM timers AS t
    WHERE t.lane = %(lane)s::smallint AND t.fire_at > now() + %(ahead_ms)s::bigint * interval '1 millisecond'
    ORDER BY t.lane, t.fire_at, t.execution_id
    LIMIT 1
) AS n;

-- name: next_timers
-- When the promoter must wake: the earliest timer of each lane, and how far off it is by the database's clock.
SELECT n.lane, n.fire_at AS due_at, (extract(epoch FROM n.fire_at - clock_timestamp()) * 1000)::double precision AS due_in_ms
FROM unnest(%(lanes)s::smallint[]) AS l (lane)
CROSS JOIN LATERAL (
    SELECT t.lane, t.fire_at
    FROM timers AS t
    WHERE t.lane = l.lane
    ORDER BY t.lane, t.fire_at, t.execution_id
    LIMIT 1
) AS n;
