-- Cron jobs: their ticks, and what changes their schedule.

-- name: find_due_cron_jobs
-- The cron ticker's work: schedules whose next tick has come, with the database's now. Half of them those that are late the
-- longest, half those that have only just come due: a schedule that catches up with thousands of ticks is late until it has,
-- and all others would come after it.
-- What a pause swallowed is caught up with as the resume said, what came after it as the job says.
-- Those that the ticker could not read are passed by: they stay due, and hold up nobody.
WITH due AS MATERIALIZED (
    (
        SELECT c.job_id, c.next_run_at, c.resumed_at, c.resume_catch_up
        FROM cron_jobs AS c
        WHERE c.lane = %(lane)s::smallint AND c.next_run_at IS NOT NULL AND c.next_run_at <= now()
            AND c.job_id <> ALL (%(unreadable)s::uuid[])
        ORDER BY c.lane, c.next_run_at, c.job_id
        LIMIT %(half)s::bigint
    )
    UNION
    (
        SELECT c.job_id, c.next_run_at, c.resumed_at, c.resume_catch_up
        FROM cron_jobs AS c
        WHERE c.lane = %(lane)s::smallint AND c.next_run_at IS NOT NULL AND c.next_run_at <= now()
            AND c.job_id <> ALL (%(unreadable)s::uuid[])
        ORDER BY c.lane DESC, c.next_run_at DESC, c.job_id DESC
        LIMIT %(half)s::bigint
    )
)
SELECT d.job_id, d.next_run_at AS tick_at, j.cron_expression, j.cron_timezone, j.cron_starts_at, j.cron_ends_at,
    CASE WHEN d.next_run_at <= d.resumed_at THEN coalesce(d.resume_catch_up, j.catch_up) ELSE j.catch_up END AS catch_up,
    now() AS db_now
FROM due AS d
JOIN jobs AS j ON j.job_id = d.job_id
-- postgres: JOIN jobs AS j ON j.job_id = ANY (ARRAY[d.job_id])
ORDER BY d.next_run_at, d.job_id;

-- name: next_cron_ticks
-- When the cron ticker must wake, by the database's clock: the earliest tick of each lane, of those that it can read.
SELECT n.lane, n.next_run_at AS due_at,
    (extract(epoch FROM n.next_run_at - clock_timestamp()) * 1000)::double precision AS due_in_ms
FROM unnest(%(lanes)s::smallint[]) AS l (lane)
CROSS JOIN LATERAL (
    SELECT c.lane, c.next_run_at
    FROM cron_jobs AS c
    WHERE c.lane = l.lane AND c.next_run_at IS NOT NULL AND c.job_id <> ALL (%(unreadable)s::uuid[])
    ORDER BY c.lane, c.next_run_at, c.job_id
    LIMIT 1
) AS n;

-- name: tick_cron_jobs
-- Advances schedules by compare-and-set and creates one execution per fired tick. Of two tickers one wins the set;
-- (job, tick) is unique besides. `fired_at` NULL skips the tick, `next_at` NULL retires the job.
WITH t AS MATERIALIZED (
    SELECT x.job_id, x.tick_at, x.fired_at, x.next_at, x.execution_id
    FROM unnest(
        %(job_ids)s::uuid[], %(tick_ats)s::timestamptz[], %(fired_ats)s::timestamptz[], %(next_ats)s::timestamptz[],
        %(execution_ids)s::uuid[]
    ) AS x (job_id, tick_at, fired_at, next_at, execution_id)
), advanced AS (
    UPDATE cron_jobs AS c
    SET next_run_at = t.next_at, last_tick_at = coalesce(t.fired_at, c.last_tick_at),
        status = CASE WHEN t.next_at IS NULL THEN 'RETIRED' ELSE 'ACTIVE' END,
        retired_at = CASE WHEN t.next_at IS NULL THEN now() END
    FROM t
    WHERE c.job_id = t.job_id AND c.status = 'ACTIVE' AND c.next_run_at = t.tick_at
    -- postgres: WHERE c.job_id = ANY (ARRAY[t.job_id]) AND c.status = 'ACTIVE' AND c.next_run_at = t.tick_at
    RETURNING c.job_id, t.fired_at, t.execution_id
), created AS (
    INSERT INTO executions (execution_id, job_id, namespace, region, lane, queue, endpoint_revision, config, timeout_ms,
        status, max_attempts, tick_at, run_at)
    SELECT a.execution_id, j.job_id, j.namespace, j.region, j.lane, j.endpoint_id, j.endpoint_revision, v.config, v.timeout_ms,
        'QUEUED', v.max_attempts, a.fired_at, a.fired_at
    FROM advanced AS a
    JOIN jobs AS j ON j.job_id = a.job_id
    -- postgres: JOIN jobs AS j ON j.job_id = ANY (ARRAY[a.job_id])
    JOIN endpoint_revisions AS v ON v.endpoint_id = j.endpoint_id AND v.revision = j.endpoint_revision
    -- postgres: JOIN endpoint_revisions AS v ON v.endpoint_id = ANY (ARRAY[j.endpoint_id]) AND v.revision = j.endpoint_revision
    WHERE a.fired_at IS NOT NULL
    ON CONFLICT (job_id, tick_at) WHERE tick_at IS NOT NULL DO NOTHING
    RETURNING execution_id, queue, lane, priority
)
INSERT INTO ready_queue (queue, lane, priority, ready_at, execution_id)
SELECT c.queue, c.lane, c.priority, now(), c.execution_id FROM created AS c
RETURNING queue, execution_id;

-- name: create_cron_job
-- A cron job with its schedule; `next_run_at` comes computed. No row back: the endpoint or its payload spec is no longer what
-- the caller checked the input against.
WITH j AS (
    INSERT INTO jobs (job_id, namespace, region, lane, endpoint_id, endpoint, endpoint_type, endpoint_revision, trigger_type,
        version, root_job_id, previous_version_id, input, cron_expression, cron_timezone, cron_starts_at, cron_ends_at,
        catch_up, request_id)
    SELECT %(job_id)s::uuid, p.namespace, %(region)s::text, %(lane)s::smallint, p.endpoint_id, p.name, p.endpoint_type, p.revision,
        'CRON', %(version)s::integer, %(root_job_id)s::uuid, %(previous_version_id)s::uuid, %(input_json)s::jsonb,
        %(cron_expression)s::text, %(cron_timezone)s::text, %(cron_starts_at)s::timestamptz, %(cron_ends_at)s::timestamptz,
        %(catch_up)s::text, %(request_id)s::text
    FROM endpoints AS p
    JOIN endpoint_revisions AS v ON v.endpoint_id = p.endpoint_id AND v.revision = p.revision
    WHERE p.endpoint_id = %(endpoint_id)s::uuid AND p.revision = %(endpoint_revision)s::integer AND p.deleted_at IS NULL
        AND (v.payload_spec IS NULL OR %(schema_revision_id)s::uuid = (
            SELECT s.revision_id FROM payload_specs AS s WHERE s.namespace = p.namespace AND s.name = v.payload_spec))
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id, lane, endpoint_id
)
INSERT INTO cron_jobs (job_id, lane, endpoint_id, next_run_at, paused_at)
SELECT j.job_id, j.lane, j.endpoint_id, %(next_run_at)s::timestamptz, %(paused_at)s::timestamptz FROM j
RETURNING job_id;

-- name: retire_cron_job
-- Cancelling: stops future ticks; what is in flight runs on. No row back: it was retired already.
UPDATE cron_jobs AS c
SET status = 'RETIRED', next_run_at = NULL, retired_at = now(), replaced_by_id = %(replaced_by_id)s::uuid
WHERE c.job_id = %(job_id)s::uuid AND c.status = 'ACTIVE'
RETURNING c.job_id;

-- name: lock_cron_job
-- Before a new version, a pause or a resume: the schedule as it stands, and the database's now.
SELECT c.job_id, c.status, c.next_run_at, c.paused_at, now() AS db_now
FROM cron_jobs AS c
WHERE c.job_id = %(job_id)s::uuid
FOR UPDATE;

-- name: pause_cron_job
-- No more ticks until it is resumed. A tick that was due in this moment counts as swallowed by the pause.
UPDATE cron_jobs AS c
SET paused_at = least(now(), c.next_run_at), next_run_at = NULL
WHERE c.job_id = %(job_id)s::uuid AND c.status = 'ACTIVE' AND c.paused_at IS NULL
RETURNING c.job_id;

-- name: resume_cron_job
-- Ticks again from `next_run_at`; those up to now are caught up with as `catch_up` says.
UPDATE cron_jobs AS c
SET paused_at = NULL, next_run_at = %(next_run_at)s::timestamptz, resumed_at = now(), resume_catch_up = %(catch_up)s::text,
    status = CASE WHEN %(next_run_at)s::timestamptz IS NULL THEN 'RETIRED' ELSE 'ACTIVE' END,
    retired_at = CASE WHEN %(next_run_at)s::timestamptz IS NULL THEN now() END
WHERE c.job_id = %(job_id)s::uuid AND c.status = 'ACTIVE' AND c.paused_at IS NOT NULL
RETURNING c.job_id;

-- name: cron_job_figures
-- The status page of a cron job: what has not ended (of the last 30 days' ticks), and how the last 24 hours went.
SELECT
    count(*) FILTER (WHERE e.status IN ('PENDING', 'QUEUED', 'RETRYING')) AS pending,
    count(*) FILTER (WHERE e.status = 'RUNNING') AS running,
    count(*) FILTER (WHERE e.status = 'SUCCESS' AND e.completed_at > now() - interval '24 hours') AS succeeded,
    count(*) FILTER (WHERE e.status = 'FAILED' AND e.completed_at > now() - interval '24 hours') AS failed,
    coalesce(avg(e.duration_ms) FILTER (WHERE e.completed_at > now() - interval '24 hours'), 0)::double precision AS avg_duration_ms,
    coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY e.duration_ms::double precision)
        FILTER (WHERE e.completed_at > now() - interval '24 hours'), 0)::double precision AS p99_duration_ms
FROM executions AS e
WHERE e.job_id = %(job_id)s::uuid AND e.tick_at IS NOT NULL AND e.tick_at > now() - interval '30 days';
