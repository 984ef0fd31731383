-- The first schema. One idempotent statement per step; `-- step:` names it and says where it runs (both, pg, crdb).
-- Types and shapes follow docs/schema.md; nothing here may differ between the engines but what is marked.

-- step: namespaces both
CREATE TABLE IF NOT EXISTS namespaces (
    namespace  TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT namespaces_pkey PRIMARY KEY (namespace)
);

-- step: namespaces_default both
INSERT INTO namespaces (namespace) VALUES ('default') ON CONFLICT (namespace) DO NOTHING;

-- step: api_keys both
CREATE TABLE IF NOT EXISTS api_keys (
    key_id      TEXT NOT NULL,
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    secret_hash BYTEA NOT NULL,
    scopes      TEXT[] NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at  TIMESTAMPTZ,
    revoked_at  TIMESTAMPTZ,
    CONSTRAINT api_keys_pkey PRIMARY KEY (key_id)
);

-- step: payload_specs both
CREATE TABLE IF NOT EXISTS payload_specs (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    revision_id UUID NOT NULL,
    schema_json JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT payload_specs_pkey PRIMARY KEY (namespace, name)
);

-- step: configs both
CREATE TABLE IF NOT EXISTS configs (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    config_id   UUID NOT NULL,
    revision    INTEGER NOT NULL,
    revision_id UUID NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT configs_pkey PRIMARY KEY (namespace, name)
);

-- step: config_revisions both
CREATE TABLE IF NOT EXISTS config_revisions (
    revision_id UUID NOT NULL,
    config_id   UUID NOT NULL,
    revision    INTEGER NOT NULL,
    values_json JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT config_revisions_pkey PRIMARY KEY (revision_id)
);

-- step: config_revisions_config_uq both
CREATE UNIQUE INDEX IF NOT EXISTS config_revisions_config_uq ON config_revisions (config_id, revision);

-- step: secrets both
CREATE TABLE IF NOT EXISTS secrets (
    namespace       TEXT NOT NULL,
    name            TEXT NOT NULL,
    encrypted_value BYTEA NOT NULL,
    key_id          TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT secrets_pkey PRIMARY KEY (namespace, name)
);

-- step: endpoints both
CREATE TABLE IF NOT EXISTS endpoints (
    endpoint_id   UUID NOT NULL,
    namespace     TEXT NOT NULL,
    name          TEXT NOT NULL,
    endpoint_type TEXT NOT NULL,
    revision      INTEGER NOT NULL,
    created_at    TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at    TIMESTAMPTZ NOT NULL DEFAULT now(),
    deleted_at    TIMESTAMPTZ,
    CONSTRAINT endpoints_pkey PRIMARY KEY (endpoint_id),
    CONSTRAINT endpoints_type_ck CHECK (endpoint_type IN ('HTTP', 'KAFKA', 'REDIS_STREAM'))
);

-- step: endpoints_name_uq both
CREATE UNIQUE INDEX IF NOT EXISTS endpoints_name_uq ON endpoints (namespace, name) WHERE deleted_at IS NULL;

-- step: endpoint_revisions both
CREATE TABLE IF NOT EXISTS endpoint_revisions (
    endpoint_id  UUID NOT NULL,
    revision     INTEGER NOT NULL,
    payload_spec TEXT,
    config       TEXT,
    spec         JSONB NOT NULL,
    retry_policy JSONB NOT NULL,
    timeout_ms   INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT endpoint_revisions_pkey PRIMARY KEY (endpoint_id, revision)
);

-- step: endpoint_references both
CREATE TABLE IF NOT EXISTS endpoint_references (
    namespace   TEXT NOT NULL,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    endpoint_id UUID NOT NULL,
    revision    INTEGER NOT NULL,
    path        TEXT NOT NULL DEFAULT '',
    CONSTRAINT endpoint_references_pkey PRIMARY KEY (namespace, kind, name, endpoint_id, revision, path),
    CONSTRAINT endpoint_references_kind_ck CHECK (kind IN ('PAYLOAD_SPEC', 'CONFIG', 'SECRET'))
);

-- step: jobs both
CREATE TABLE IF NOT EXISTS jobs (
    job_id              UUID NOT NULL,
    namespace           TEXT NOT NULL,
    region              TEXT NOT NULL DEFAULT 'default',
    lane                SMALLINT NOT NULL,
    endpoint_id         UUID NOT NULL,
    endpoint            TEXT NOT NULL,
    endpoint_type       TEXT NOT NULL,
    endpoint_revision   INTEGER NOT NULL,
    trigger_type        TEXT NOT NULL,
    version             INTEGER NOT NULL DEFAULT 1,
    root_job_id         UUID NOT NULL,
    previous_version_id UUID,
    idempotency_key     TEXT,
    dedup_hash          BYTEA,
    input               JSONB,
    run_at              TIMESTAMPTZ,
    cron_expression     TEXT,
    cron_timezone       TEXT,
    cron_starts_at      TIMESTAMPTZ,
    cron_ends_at        TIMESTAMPTZ,
    catch_up            TEXT,
    request_id          TEXT,
    created_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT jobs_trigger_ck CHECK (trigger_type IN ('IMMEDIATE', 'DELAYED', 'CRON')),
    CONSTRAINT jobs_catch_up_ck CHECK (catch_up IN ('ALL', 'LATEST', 'NONE'))
);

-- step: jobs_dedup_uq both
CREATE UNIQUE INDEX IF NOT EXISTS jobs_dedup_uq ON jobs (dedup_hash) WHERE dedup_hash IS NOT NULL;

-- step: jobs_endpoint_idx both
CREATE INDEX IF NOT EXISTS jobs_endpoint_idx ON jobs (endpoint_id, created_at DESC, job_id DESC);

-- step: jobs_versions_idx both
CREATE UNIQUE INDEX IF NOT EXISTS jobs_versions_uq ON jobs (root_job_id, version) WHERE trigger_type = 'CRON';

-- step: jobs_created_idx pg
CREATE INDEX IF NOT EXISTS jobs_created_idx ON jobs (namespace, created_at DESC, job_id DESC);

-- step: jobs_created_idx_hashed crdb
CREATE INDEX IF NOT EXISTS jobs_created_idx ON jobs (namespace, created_at DESC, job_id DESC) USING HASH WITH (bucket_count = 16);

-- step: cron_jobs both
CREATE TABLE IF NOT EXISTS cron_jobs (
    job_id          UUID NOT NULL,
    lane            SMALLINT NOT NULL,
    endpoint_id     UUID NOT NULL,
    status          TEXT NOT NULL DEFAULT 'ACTIVE',
    next_run_at     TIMESTAMPTZ,
    last_tick_at    TIMESTAMPTZ,
    paused_at       TIMESTAMPTZ,
    resumed_at      TIMESTAMPTZ,
    resume_catch_up TEXT,
    retired_at      TIMESTAMPTZ,
    replaced_by_id  UUID,
    CONSTRAINT cron_jobs_pkey PRIMARY KEY (job_id),
    CONSTRAINT cron_jobs_status_ck CHECK (status IN ('ACTIVE', 'RETIRED')),
    CONSTRAINT cron_jobs_paused_ck CHECK (paused_at IS NULL OR next_run_at IS NULL),
    CONSTRAINT cron_jobs_resume_ck CHECK (resume_catch_up IN ('ALL', 'LATEST', 'NONE')),
    CONSTRAINT cron_jobs_retired_ck CHECK (status = 'ACTIVE' OR (next_run_at IS NULL AND retired_at IS NOT NULL))
);

-- step: cron_jobs_due_idx both
CREATE INDEX IF NOT EXISTS cron_jobs_due_idx ON cron_jobs (lane, next_run_at, job_id) WHERE next_run_at IS NOT NULL;

-- step: cron_jobs_endpoint_idx both
CREATE INDEX IF NOT EXISTS cron_jobs_endpoint_idx ON cron_jobs (endpoint_id) WHERE status = 'ACTIVE';

-- step: executions both
CREATE TABLE IF NOT EXISTS executions (
    execution_id       UUID NOT NULL,
    job_id             UUID NOT NULL,
    namespace          TEXT NOT NULL,
    region             TEXT NOT NULL DEFAULT 'default',
    lane               SMALLINT NOT NULL,
    queue              UUID NOT NULL,
    priority           SMALLINT NOT NULL DEFAULT 1,
    endpoint_revision  INTEGER NOT NULL,
    config             TEXT,
    config_revision_id UUID,
    timeout_ms         INTEGER NOT NULL,
    status             TEXT NOT NULL,
    attempt_count      INTEGER NOT NULL DEFAULT 0,
    max_attempts       INTEGER NOT NULL DEFAULT 1,
    tick_at            TIMESTAMPTZ,
    run_at             TIMESTAMPTZ NOT NULL DEFAULT now(),
    worker_id          UUID,
    started_at         TIMESTAMPTZ,
    completed_at       TIMESTAMPTZ,
    duration_ms        BIGINT,
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT executions_pkey PRIMARY KEY (execution_id),
    CONSTRAINT executions_status_ck
        CHECK (status IN ('PENDING', 'QUEUED', 'RUNNING', 'RETRYING', 'SUCCESS', 'FAILED', 'CANCELLED')),
    CONSTRAINT executions_worker_ck CHECK ((status = 'RUNNING') = (worker_id IS NOT NULL)),
    CONSTRAINT executions_completed_ck
        CHECK ((status IN ('SUCCESS', 'FAILED', 'CANCELLED')) = (completed_at IS NOT NULL))
);

-- step: executions_tick_uq both
CREATE UNIQUE INDEX IF NOT EXISTS executions_tick_uq ON executions (job_id, tick_at) WHERE tick_at IS NOT NULL;

-- step: ready_queue both
CREATE TABLE IF NOT EXISTS ready_queue (
    queue        UUID NOT NULL,
    lane         SMALLINT NOT NULL,
    priority     SMALLINT NOT NULL,
    ready_at     TIMESTAMPTZ NOT NULL,
    execution_id UUID NOT NULL,
    CONSTRAINT ready_queue_pkey PRIMARY KEY (queue, lane, priority, ready_at, execution_id)
);

-- step: timers both
CREATE TABLE IF NOT EXISTS timers (
    lane         SMALLINT NOT NULL,
    fire_at      TIMESTAMPTZ NOT NULL,
    execution_id UUID NOT NULL,
    queue        UUID NOT NULL,
    priority     SMALLINT NOT NULL,
    CONSTRAINT timers_pkey PRIMARY KEY (lane, fire_at, execution_id)
);

-- step: leases both
CREATE TABLE IF NOT EXISTS leases (
    worker_id      UUID NOT NULL,
    execution_id   UUID NOT NULL,
    attempt_number INTEGER NOT NULL,
    expires_at     TIMESTAMPTZ NOT NULL,
    CONSTRAINT leases_pkey PRIMARY KEY (worker_id, execution_id)
);

-- step: attempts both
CREATE TABLE IF NOT EXISTS attempts (
    execution_id   UUID NOT NULL,
    attempt_number INTEGER NOT NULL,
    region         TEXT NOT NULL DEFAULT 'default',
    worker_id      UUID,
    status         TEXT NOT NULL,
    started_at     TIMESTAMPTZ NOT NULL,
    completed_at   TIMESTAMPTZ,
    duration_ms    BIGINT,
    output         JSONB,
    error          JSONB,
    CONSTRAINT attempts_pkey PRIMARY KEY (execution_id, attempt_number),
    CONSTRAINT attempts_status_ck CHECK (status IN ('SUCCESS', 'FAILED'))
);

-- step: execution_logs both
CREATE TABLE IF NOT EXISTS execution_logs (
    execution_id   UUID NOT NULL,
    attempt_number INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    region         TEXT NOT NULL DEFAULT 'default',
    level          TEXT NOT NULL,
    message        TEXT NOT NULL,
    logged_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT execution_logs_pkey PRIMARY KEY (execution_id, attempt_number, seq),
    CONSTRAINT execution_logs_level_ck CHECK (level IN ('DEBUG', 'INFO', 'WARN', 'ERROR'))
);

-- step: region_heartbeats both
CREATE TABLE IF NOT EXISTS region_heartbeats (
    region       TEXT NOT NULL,
    component    TEXT NOT NULL,
    instance_id  UUID NOT NULL,
    address      TEXT,
    status       TEXT NOT NULL DEFAULT 'ALIVE',
    last_beat_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    started_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    metadata     JSONB,
    CONSTRAINT region_heartbeats_pkey PRIMARY KEY (region, component, instance_id),
    CONSTRAINT region_heartbeats_status_ck CHECK (status IN ('ALIVE', 'DRAINING', 'DEAD'))
);

-- step: region_status both
CREATE TABLE IF NOT EXISTS region_status (
    region     TEXT NOT NULL,
    alive      BOOLEAN NOT NULL DEFAULT true,
    failed_at  TIMESTAMPTZ,
    adopted_by TEXT,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT region_status_pkey PRIMARY KEY (region)
);

-- step: region_status_default both
INSERT INTO region_status (region, alive) VALUES ('default', true) ON CONFLICT (region) DO NOTHING;

-- step: ready_queue_storage pg
ALTER TABLE ready_queue SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- step: timers_storage pg
ALTER TABLE timers SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- step: leases_storage pg
ALTER TABLE leases SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- step: executions_storage pg
ALTER TABLE executions SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- step: cron_jobs_storage pg
ALTER TABLE cron_jobs SET (fillfactor = 70);

-- step: ready_queue_gc crdb
ALTER TABLE ready_queue CONFIGURE ZONE USING gc.ttlseconds = 600;

-- step: timers_gc crdb
ALTER TABLE timers CONFIGURE ZONE USING gc.ttlseconds = 600;

-- step: leases_gc crdb
ALTER TABLE leases CONFIGURE ZONE USING gc.ttlseconds = 600;
