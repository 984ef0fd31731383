-- Jobs: creation, reading, and what they refer to.

-- name: create_jobs
-- One-shot jobs, one per element of the document, in one transaction: job, execution, and its place in the queue or among the
-- timers. A row does not come back when its idempotency key is known already, or when the endpoint or its payload spec is no
-- longer what the caller checked the input against; the caller tells the two apart by looking for the key.
-- LATERAL with a limit: each job looks its endpoint up by key. As plain joins the planner may walk all endpoints for all jobs.
WITH r AS MATERIALIZED (
    SELECT x.job_id, x.lane, x.endpoint_id, x.endpoint_revision, x.schema_revision_id, x.trigger_type, x.idempotency_key,
        x.dedup_hash, x.input_json, x.run_at, x.request_id
    FROM jsonb_to_recordset(%(jobs)s::jsonb) AS x (job_id uuid, lane smallint, endpoint_id uuid, endpoint_revision integer,
        schema_revision_id uuid, trigger_type text, idempotency_key text, dedup_hash text, input_json text,
        run_at timestamptz, request_id text)
), j AS (
    INSERT INTO jobs (job_id, namespace, region, lane, endpoint_id, endpoint, endpoint_type, endpoint_revision, trigger_type,
        root_job_id, idempotency_key, dedup_hash, input, run_at, request_id)
    SELECT r.job_id, p.namespace, %(region)s::text, r.lane, r.endpoint_id, p.name, p.endpoint_type, r.endpoint_revision,
        r.trigger_type, r.job_id, r.idempotency_key, decode(r.dedup_hash, 'hex'), r.input_json::jsonb, r.run_at, r.request_id
    FROM r
    CROSS JOIN LATERAL (
        SELECT p.namespace, p.name, p.endpoint_type, v.payload_spec
        FROM endpoints AS p
        JOIN endpoint_revisions AS v ON v.endpoint_id = p.endpoint_id AND v.revision = p.revision
        WHERE p.endpoint_id = r.endpoint_id AND p.revision = r.endpoint_revision AND p.deleted_at IS NULL
        LIMIT 1
    ) AS p
    WHERE p.payload_spec IS NULL OR r.schema_revision_id = (
        SELECT s.revision_id FROM payload_specs AS s WHERE s.namespace = p.namespace AND s.name = p.payload_spec)
    ON CONFLICT (dedup_hash) WHERE dedup_hash IS NOT NULL DO NOTHING
    RETURNING job_id, namespace, region, lane, endpoint_id, endpoint_revision, run_at, created_at
), e AS (
    INSERT INTO executions (execution_id, job_id, namespace, region, lane, queue, endpoint_revision, config, timeout_ms,
        status, max_attempts, run_at)
    SELECT j.job_id, j.job_id, j.namespace, j.region, j.lane, j.endpoint_id, j.endpoint_revision, v.config, v.timeout_ms,
        CASE WHEN j.run_at > now() THEN 'PENDING' ELSE 'QUEUED' END, v.max_attempts, coalesce(j.run_at, now())
    FROM j
    CROSS JOIN LATERAL (
        SELECT v.config, v.timeout_ms, v.max_attempts
        FROM endpoint_revisions AS v
        WHERE v.endpoint_id = j.endpoint_id AND v.revision = j.endpoint_revision
        LIMIT 1
    ) AS v
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
