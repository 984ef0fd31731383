-- What callers read, each put together in one place.

-- step: job_details both
CREATE OR REPLACE VIEW job_details AS
SELECT j.job_id, j.namespace, j.endpoint_id, j.endpoint, j.endpoint_type, j.endpoint_revision, j.trigger_type,
    coalesce(c.status, CASE WHEN e.completed_at IS NULL THEN 'ACTIVE' ELSE 'RETIRED' END) AS status,
    j.version, j.root_job_id, j.previous_version_id, c.replaced_by_id, j.idempotency_key, j.input, j.run_at,
    j.cron_expression, j.cron_timezone, j.cron_starts_at, j.cron_ends_at,
    c.next_run_at, c.last_tick_at, j.catch_up, c.paused_at,
    e.execution_id, e.status AS execution_status, e.created_at AS execution_created_at,
    j.request_id, j.created_at, coalesce(c.retired_at, e.completed_at) AS retired_at
FROM jobs AS j
LEFT JOIN cron_jobs AS c ON c.job_id = j.job_id
LEFT JOIN executions AS e ON e.execution_id = j.job_id;

-- step: execution_details both
CREATE OR REPLACE VIEW execution_details AS
SELECT e.execution_id, e.job_id, e.namespace, j.endpoint, j.endpoint_type, j.idempotency_key, e.tick_at, e.status, j.input,
    a.output, a.error, e.attempt_count, e.max_attempts, e.run_at, e.started_at, e.completed_at, e.duration_ms, e.created_at
FROM executions AS e
JOIN jobs AS j ON j.job_id = e.job_id
LEFT JOIN attempts AS a ON a.execution_id = e.execution_id
    AND a.attempt_number = CASE WHEN e.status = 'RUNNING' THEN e.attempt_count - 1 ELSE e.attempt_count END;

-- step: endpoint_details both
CREATE OR REPLACE VIEW endpoint_details AS
SELECT p.endpoint_id, p.namespace, p.name, p.endpoint_type, p.revision, v.payload_spec, v.config, v.spec, v.retry_policy,
    p.created_at, p.updated_at
FROM endpoints AS p
JOIN endpoint_revisions AS v ON v.endpoint_id = p.endpoint_id AND v.revision = p.revision
WHERE p.deleted_at IS NULL;

-- step: config_details both
CREATE OR REPLACE VIEW config_details AS
SELECT c.namespace, c.name, c.config_id, c.revision, c.revision_id, v.values_json, c.created_at, c.updated_at
FROM configs AS c
JOIN config_revisions AS v ON v.revision_id = c.revision_id;
