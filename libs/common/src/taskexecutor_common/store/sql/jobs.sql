-- Jobs: creation, reading, and what they refer to.

-- name: create_jobs
-- One-shot jobs, one row per array element, in one transaction: job, execution, and its place in the queue or among the timers.
-- A row does not come back when its idempotency key is known already, or when the endpoint or its payload spec is no longer
-- what the caller checked the input against; the caller tells the two apart by looking for the key.
WITH r AS MATERIALIZED (
    SELECT x.job_id, x.lane, x.endpoint_id, x.endpoint_revision, x.schema_revision_id, x.trigger_type, x.idempotency_key,
        x.dedup_hash, x.input, x.run_at, x.request_id
    FROM unnest(
        %(job_ids)s::uuid[], %(lanes)s::smallint[], %(endpoint_ids)s::uuid[], %(endpoint_revisions)s::integer[],
        %(schema_revision_ids)s::uuid[], %(trigger_types)s::text[], %(idempotency_keys)s::text[], %(dedup_hashes)s::bytea[],
        %(inputs)s::text[], %(run_ats)s::timestamptz[], %(request_ids)s::text[]
    ) AS x (job_id, lane, endpoint_id, endpoint_revision, schema_revision_id, trigger_type, idempotency_key,
        dedup_hash, input, run_at, request_id)
), fresh AS MATERIALIZED (
    SELECT r.job_id, p.namespace, r.lane, p.endpoint_id, p.name, p.endpoint_type, r.endpoint_revision, r.trigger_type,
        r.idempotency_key, r.dedup_hash, r.input, r.run_at, r.request_id, v.config, v.timeout_ms, v.max_attempts
    FROM r
    JOIN endpoints AS p ON p.endpoint_id = r.endpoint_id AND p.revision = r.endpoint_revision AND p.deleted_at IS NULL
    JOIN endpoint_revisions AS v ON v.endpoint_id = p.endpoint_id AND v.revision = p.revision
    LEFT JOIN payload_specs AS s ON s.namespace = p.namespace AND s.name = v.payload_spec
    WHERE v.payload_spec IS NULL OR s.revision_id = r.schema_revision_id
), j AS (
    INSERT INTO jobs (job_id, namespace, region, lane, endpoint_id, endpoint, endpoint_type, endpoint_revision, trigger_type,
        root_job_id, idempotency_key, dedup_hash, input, run_at, request_id)
    SELECT f.job_id, f.namespace, %(region)s::text, f.lane, f.endpoint_id, f.name, f.endpoint_type, f.endpoint_revision,
        f.trigger_type, f.job_id, f.idempotency_key, f.dedup_hash, f.input::jsonb, f.run_at, f.request_id
    FROM fresh AS f
    ON CONFLICT (dedup_hash) WHERE dedup_hash IS NOT NULL DO NOTHING
    RETURNING job_id, namespace, region, lane, endpoint_id, endpoint_revision, run_at, created_at
), e AS (
    INSERT INTO executions (execution_id, job_id, namespace, region, lane, queue, endpoint_revision, config, timeout_ms,
        status, max_attempts, run_at)
    SELECT j.job_id, j.job_id, j.namespace, j.region, j.lane, j.endpoint_id, j.endpoint_revision, f.config, f.timeout_ms,
        CASE WHEN j.run_at > now() THEN 'PENDING' ELSE 'QUEUED' END, f.max_attempts, coalesce(j.run_at, now())
    FROM j
    JOIN fresh AS f ON f.job_id = j.job_id
    RETURNING execution_id, queue, lane, priority, status, run_at, created_at
), now_due AS (
    INSERT INTO ready_queue (queue, lane, priority, ready_at, execution_id)
    SELECT e.queue, e.lane, e.priority, now(), e.execution_id FROM e WHERE e.status = 'QUEUED'
    RETURNING execution_id
), later AS (
    INSERT INTO timers (lane, fire_at, execution_id, queue, priority)
    SELECT e.lane, e.run_at, e.execution_id, e.queue, e.priority FROM e WHERE e.status = 'PENDING'
    RETURNING execution_id
)
SELECT e.execution_id AS job_id, e.status, e.created_at FROM e;

-- name: find_jobs_by_key
-- Which jobs hold these idempotency keys.
SELECT j.job_id, j.dedup_hash
FROM jobs AS j
WHERE j.dedup_hash = ANY (%(dedup_hashes)s::bytea[]) AND j.dedup_hash IS NOT NULL;

-- name: get_jobs
-- Jobs of a namespace by id, with what can change about them.
SELECT j.job_id, j.endpoint_id, j.endpoint, j.endpoint_type, j.endpoint_revision, j.trigger_type, j.status, j.version, j.root_job_id,
    j.previous_version_id, j.replaced_by_id, j.idempotency_key, j.input, j.run_at, j.cron_expression, j.cron_timezone,
    j.cron_starts_at, j.cron_ends_at, j.next_run_at, j.last_tick_at, j.catch_up, j.paused_at, j.execution_id,
    j.execution_status, j.execution_created_at, j.request_id, j.created_at, j.retired_at
FROM job_details AS j
WHERE j.job_id = ANY (%(job_ids)s::uuid[]) AND j.namespace = %(namespace)s::text;

-- name: list_jobs
-- A page of a namespace's jobs, newest first. A filter that is NULL does not filter.
SELECT j.job_id, j.endpoint_id, j.endpoint, j.endpoint_type, j.endpoint_revision, j.trigger_type, j.status, j.version, j.root_job_id,
    j.previous_version_id, j.replaced_by_id, j.idempotency_key, j.input, j.run_at, j.cron_expression, j.cron_timezone,
    j.cron_starts_at, j.cron_ends_at, j.next_run_at, j.last_tick_at, j.catch_up, j.paused_at, j.execution_id,
    j.execution_status, j.execution_created_at, j.request_id, j.created_at, j.retired_at
FROM job_details AS j
WHERE j.namespace = %(namespace)s::text
    AND (j.created_at, j.job_id) < (%(before_created_at)s::timestamptz, %(before_id)s::uuid)
    AND (%(trigger_type)s::text IS NULL OR j.trigger_type = %(trigger_type)s::text)
    AND (%(status)s::text IS NULL OR j.status = %(status)s::text)
ORDER BY j.created_at DESC, j.job_id DESC
LIMIT %(page)s::bigint;

-- name: list_jobs_of_endpoint
-- The same for one endpoint name, living or deleted: the endpoints of that name are few, their jobs are walked by index.
SELECT j.job_id, j.endpoint_id, j.endpoint, j.endpoint_type, j.endpoint_revision, j.trigger_type, j.status, j.version, j.root_job_id,
    j.previous_version_id, j.replaced_by_id, j.idempotency_key, j.input, j.run_at, j.cron_expression, j.cron_timezone,
    j.cron_starts_at, j.cron_ends_at, j.next_run_at, j.last_tick_at, j.catch_up, j.paused_at, j.execution_id,
    j.execution_status, j.execution_created_at, j.request_id, j.created_at, j.retired_at
FROM job_details AS j
WHERE j.endpoint_id = ANY (%(endpoint_ids)s::uuid[]) AND j.namespace = %(namespace)s::text
    AND (j.created_at, j.job_id) < (%(before_created_at)s::timestamptz, %(before_id)s::uuid)
    AND (%(trigger_type)s::text IS NULL OR j.trigger_type = %(trigger_type)s::text)
    AND (%(status)s::text IS NULL OR j.status = %(status)s::text)
ORDER BY j.created_at DESC, j.job_id DESC
LIMIT %(page)s::bigint;

-- name: list_job_versions
-- A page of all versions of a cron job, newest first.
SELECT j.job_id, j.endpoint_id, j.endpoint, j.endpoint_type, j.endpoint_revision, j.trigger_type, j.status, j.version, j.root_job_id,
    j.previous_version_id, j.replaced_by_id, j.idempotency_key, j.input, j.run_at, j.cron_expression, j.cron_timezone,
    j.cron_starts_at, j.cron_ends_at, j.next_run_at, j.last_tick_at, j.catch_up, j.paused_at, j.execution_id,
    j.execution_status, j.execution_created_at, j.request_id, j.created_at, j.retired_at
FROM job_details AS j
WHERE j.root_job_id = %(root_job_id)s::uuid AND j.namespace = %(namespace)s::text AND j.trigger_type = 'CRON'
    AND j.version < %(before_version)s::integer
ORDER BY j.version DESC
LIMIT %(page)s::bigint;
