-- Payload specs, configs, secrets, endpoints and API keys: small, read-mostly.

-- name: create_payload_spec
-- No row back: the name is taken.
INSERT INTO payload_specs (namespace, name, revision_id, schema_json)
VALUES (%(namespace)s::text, %(name)s::text, %(revision_id)s::uuid, %(schema_json)s::jsonb)
ON CONFLICT (namespace, name) DO NOTHING
RETURNING name, revision_id, schema_json, created_at, updated_at;

-- name: get_payload_spec
SELECT p.name, p.revision_id, p.schema_json, p.created_at, p.updated_at
FROM payload_specs AS p
WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text;

-- name: list_payload_specs
SELECT p.name, p.revision_id, p.schema_json, p.created_at, p.updated_at
FROM payload_specs AS p
WHERE p.namespace = %(namespace)s::text
    AND (p.created_at, p.name) < (%(before_created_at)s::timestamptz, %(before_name)s::text)
ORDER BY p.created_at DESC, p.name DESC
LIMIT %(page)s::bigint;

-- name: update_payload_spec
UPDATE payload_specs AS p
SET schema_json = %(schema_json)s::jsonb, revision_id = %(revision_id)s::uuid, updated_at = now()
WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text
RETURNING p.name, p.revision_id, p.schema_json, p.created_at, p.updated_at;

-- name: lock_payload_spec
SELECT p.name FROM payload_specs AS p WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text FOR UPDATE;

-- name: delete_payload_spec
DELETE FROM payload_specs AS p WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text RETURNING p.name;

-- name: create_config
-- No row back: the name is taken. The first revision is written with it.
WITH c AS (
    INSERT INTO configs (namespace, name, config_id, revision, revision_id)
    VALUES (%(namespace)s::text, %(name)s::text, %(config_id)s::uuid, 1, %(revision_id)s::uuid)
    ON CONFLICT (namespace, name) DO NOTHING
    RETURNING name, config_id, revision, revision_id, created_at, updated_at
), v AS (
    INSERT INTO config_revisions (revision_id, config_id, revision, values_json)
    SELECT c.revision_id, c.config_id, c.revision, %(values_json)s::jsonb FROM c
    RETURNING revision_id, values_json
)
SELECT c.name, c.config_id, c.revision, c.revision_id, v.values_json, c.created_at, c.updated_at
FROM c JOIN v ON v.revision_id = c.revision_id;

-- name: get_config
SELECT c.name, c.config_id, c.revision, c.revision_id, c.values_json, c.created_at, c.updated_at
FROM config_details AS c
WHERE c.namespace = %(namespace)s::text AND c.name = %(name)s::text;

-- name: list_configs
SELECT c.name, c.config_id, c.revision, c.revision_id, c.values_json, c.created_at, c.updated_at
FROM config_details AS c
WHERE c.namespace = %(namespace)s::text
    AND (c.created_at, c.name) < (%(before_created_at)s::timestamptz, %(before_name)s::text)
ORDER BY c.created_at DESC, c.name DESC
LIMIT %(page)s::bigint;

-- name: lock_config
SELECT c.name FROM configs AS c WHERE c.namespace = %(namespace)s::text AND c.name = %(name)s::text FOR UPDATE;

-- name: update_config
-- The next revision; older ones stay for the executions that pinned them.
WITH c AS (
    UPDATE configs AS c
    SET revision = c.revision + 1, revision_id = %(revision_id)s::uuid, updated_at = now()
    WHERE c.namespace = %(namespace)s::text AND c.name = %(name)s::text
    RETURNING c.name, c.config_id, c.revision, c.revision_id, c.created_at, c.updated_at
), v AS (
    INSERT INTO config_revisions (revision_id, config_id, revision, values_json)
    SELECT c.revision_id, c.config_id, c.revision, %(values_json)s::jsonb FROM c
    RETURNING revision_id, values_json
)
SELECT c.name, c.config_id, c.revision, c.revision_id, v.values_json, c.created_at, c.updated_at
FROM c JOIN v ON v.revision_id = c.revision_id;

-- name: delete_config
-- Its revisions stay: executions may have pinned them.
DELETE FROM configs AS c WHERE c.namespace = %(namespace)s::text AND c.name = %(name)s::text RETURNING c.name;

-- name: get_config_revision
-- What the dispatcher caches: a revision never changes.
SELECT v.revision_id, v.values_json FROM config_revisions AS v WHERE v.revision_id = %(revision_id)s::uuid;

-- name: list_config_revisions
SELECT v.revision, v.values_json, v.created_at
FROM config_revisions AS v
WHERE v.config_id = %(config_id)s::uuid AND v.revision < %(before_revision)s::integer
ORDER BY v.revision DESC
LIMIT %(page)s::bigint;

-- name: create_secret
-- No row back: the name is taken.
INSERT INTO secrets (namespace, name, encrypted_value, key_id)
VALUES (%(namespace)s::text, %(name)s::text, %(encrypted_value)s::bytea, %(key_id)s::text)
ON CONFLICT (namespace, name) DO NOTHING
RETURNING name, created_at, updated_at;

-- name: get_secret
SELECT s.name, s.created_at, s.updated_at
FROM secrets AS s
WHERE s.namespace = %(namespace)s::text AND s.name = %(name)s::text;

-- name: get_encrypted_secret
-- For the dispatcher, and for nobody else.
SELECT s.name, s.key_id, s.encrypted_value
FROM secrets AS s
WHERE s.namespace = %(namespace)s::text AND s.name = %(name)s::text;

-- name: list_secrets
SELECT s.name, s.created_at, s.updated_at
FROM secrets AS s
WHERE s.namespace = %(namespace)s::text
    AND (s.created_at, s.name) < (%(before_created_at)s::timestamptz, %(before_name)s::text)
ORDER BY s.created_at DESC, s.name DESC
LIMIT %(page)s::bigint;

-- name: update_secret
UPDATE secrets AS s
SET encrypted_value = %(encrypted_value)s::bytea, key_id = %(key_id)s::text, updated_at = now()
WHERE s.namespace = %(namespace)s::text AND s.name = %(name)s::text
RETURNING s.name, s.created_at, s.updated_at;

-- name: lock_secret
SELECT s.name FROM secrets AS s WHERE s.namespace = %(namespace)s::text AND s.name = %(name)s::text FOR UPDATE;

-- name: delete_secret
DELETE FROM secrets AS s WHERE s.namespace = %(namespace)s::text AND s.name = %(name)s::text RETURNING s.name;

-- name: create_endpoint
-- No row back: the name is taken by a living endpoint.
INSERT INTO endpoints (endpoint_id, namespace, name, endpoint_type, revision)
VALUES (%(endpoint_id)s::uuid, %(namespace)s::text, %(name)s::text, %(endpoint_type)s::text, 1)
ON CONFLICT (namespace, name) WHERE deleted_at IS NULL DO NOTHING
RETURNING endpoint_id, revision;

-- name: create_endpoint_revision
INSERT INTO endpoint_revisions (endpoint_id, revision, payload_spec, config, spec, retry_policy, timeout_ms, max_attempts)
VALUES (%(endpoint_id)s::uuid, %(revision)s::integer, %(payload_spec)s::text, %(config)s::text, %(spec)s::jsonb,
    %(retry_policy)s::jsonb, %(timeout_ms)s::integer, %(max_attempts)s::integer);

-- name: create_endpoint_references
INSERT INTO endpoint_references (namespace, kind, name, endpoint_id, revision, path)
SELECT %(namespace)s::text, x.kind, x.name, %(endpoint_id)s::uuid, %(revision)s::integer, x.path
FROM unnest(%(kinds)s::text[], %(names)s::text[], %(paths)s::text[]) AS x (kind, name, path)
ON CONFLICT (namespace, kind, name, endpoint_id, revision, path) DO NOTHING;

-- name: get_endpoint
SELECT p.endpoint_id, p.namespace, p.name, p.endpoint_type, p.revision, p.payload_spec, p.config, p.spec, p.retry_policy,
    p.created_at, p.updated_at
FROM endpoint_details AS p
WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text;

-- name: list_endpoints
SELECT p.endpoint_id, p.namespace, p.name, p.endpoint_type, p.revision, p.payload_spec, p.config, p.spec, p.retry_policy,
    p.created_at, p.updated_at
FROM endpoint_details AS p
WHERE p.namespace = %(namespace)s::text
    AND (%(endpoint_type)s::text IS NULL OR p.endpoint_type = %(endpoint_type)s::text)
    AND (p.created_at, p.name) < (%(before_created_at)s::timestamptz, %(before_name)s::text)
ORDER BY p.created_at DESC, p.name DESC
LIMIT %(page)s::bigint;

-- name: find_endpoint_ids
-- Endpoints that bear or bore a name, the deleted ones too.
SELECT p.endpoint_id FROM endpoints AS p WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text;

-- name: lock_endpoint
SELECT p.endpoint_id, p.endpoint_type, p.revision
FROM endpoints AS p
WHERE p.namespace = %(namespace)s::text AND p.name = %(name)s::text AND p.deleted_at IS NULL
FOR UPDATE;

-- name: advance_endpoint
UPDATE endpoints AS p
SET revision = %(revision)s::integer, updated_at = now()
WHERE p.endpoint_id = %(endpoint_id)s::uuid AND p.revision = %(revision)s::integer - 1 AND p.deleted_at IS NULL
RETURNING p.endpoint_id;

-- name: hide_endpoint
-- What cancelled jobs left in its queue, and a job that was created meanwhile, are claimed yet: see lift_pause.
UPDATE endpoints AS p
SET deleted_at = now()
WHERE p.endpoint_id = %(endpoint_id)s::uuid AND p.deleted_at IS NULL
RETURNING p.endpoint_id;

-- name: find_live_jobs_of_endpoint
-- Jobs that can still cause deliveries. Timers have no index by endpoint: this is a rare, administrative read.
SELECT x.job_id
FROM (
    SELECT c.job_id FROM cron_jobs AS c WHERE c.endpoint_id = %(endpoint_id)s::uuid AND c.status = 'ACTIVE'
    UNION ALL
    SELECT e.job_id FROM executions AS e
    WHERE e.completed_at IS NULL AND e.execution_id IN (
        SELECT r.execution_id FROM ready_queue AS r WHERE r.queue = %(endpoint_id)s::uuid
        UNION ALL
        SELECT t.execution_id FROM timers AS t WHERE t.queue = %(endpoint_id)s::uuid
        UNION ALL
        SELECT l.execution_id FROM leases AS l
        JOIN executions AS h ON h.execution_id = l.execution_id AND h.queue = %(endpoint_id)s::uuid
    )
) AS x
LIMIT 3;

-- name: get_endpoint_revision
-- What the dispatcher caches: a revision never changes.
SELECT p.endpoint_id, p.namespace, p.name, p.endpoint_type, v.revision, v.spec, v.retry_policy, v.timeout_ms
FROM endpoint_revisions AS v
JOIN endpoints AS p ON p.endpoint_id = v.endpoint_id
WHERE v.endpoint_id = %(endpoint_id)s::uuid AND v.revision = %(revision)s::integer;

-- name: list_endpoint_revisions
SELECT v.revision, v.payload_spec, v.config, v.spec, v.retry_policy, v.created_at
FROM endpoint_revisions AS v
WHERE v.endpoint_id = %(endpoint_id)s::uuid AND v.revision < %(before_revision)s::integer
ORDER BY v.revision DESC
LIMIT %(page)s::bigint;

-- name: find_referrers
-- Endpoints whose current revision, or an older one that a live job still uses, refers to something.
-- Timers have no index by endpoint: all of them are read, and once, however many revisions and endpoints are asked about. Hence
-- the lists on PostgreSQL, where a join might read them again for each endpoint if it believes that there are few.
WITH named AS MATERIALIZED (
    SELECT p.name AS endpoint, f.path, f.endpoint_id, f.revision, f.revision = p.revision AS is_current
    FROM endpoint_references AS f
    JOIN endpoints AS p ON p.endpoint_id = f.endpoint_id AND p.deleted_at IS NULL
    WHERE f.namespace = %(namespace)s::text AND f.kind = %(kind)s::text AND f.name = %(name)s::text
), old AS MATERIALIZED (
    SELECT DISTINCT n.endpoint_id FROM named AS n WHERE NOT n.is_current
), waiting AS MATERIALIZED (
    SELECT r.execution_id FROM ready_queue AS r
    WHERE r.queue IN (SELECT o.endpoint_id FROM old AS o)
    -- postgres: WHERE r.queue = ANY (ARRAY(SELECT o.endpoint_id FROM old AS o))
    UNION ALL
    SELECT t.execution_id FROM timers AS t
    WHERE t.queue IN (SELECT o.endpoint_id FROM old AS o)
    -- postgres: WHERE t.queue = ANY (ARRAY(SELECT o.endpoint_id FROM old AS o))
    UNION ALL
    SELECT l.execution_id FROM leases AS l
), live AS MATERIALIZED (
    SELECT e.queue AS endpoint_id, e.endpoint_revision AS revision
    FROM waiting AS w
    JOIN executions AS e ON e.execution_id = w.execution_id
    -- postgres: JOIN executions AS e ON e.execution_id = ANY (ARRAY[w.execution_id])
    WHERE e.completed_at IS NULL
    UNION
    SELECT c.endpoint_id, j.endpoint_revision
    FROM cron_jobs AS c
    JOIN jobs AS j ON j.job_id = c.job_id
    -- postgres: JOIN jobs AS j ON j.job_id = ANY (ARRAY[c.job_id])
    WHERE c.status = 'ACTIVE' AND c.endpoint_id IN (SELECT o.endpoint_id FROM old AS o)
    -- postgres: WHERE c.status = 'ACTIVE' AND c.endpoint_id = ANY (ARRAY(SELECT o.endpoint_id FROM old AS o))
)
SELECT DISTINCT n.endpoint, n.path
FROM named AS n
WHERE n.is_current OR (n.endpoint_id, n.revision) IN (SELECT v.endpoint_id, v.revision FROM live AS v)
ORDER BY n.endpoint, n.path
LIMIT 100;

-- name: ensure_api_key
-- The bootstrap key: made if it is not there, brought back to life if it is.
INSERT INTO api_keys (key_id, namespace, name, secret_hash, scopes)
VALUES (%(key_id)s::text, %(namespace)s::text, %(name)s::text, %(secret_hash)s::bytea, %(scopes)s::text[])
ON CONFLICT (key_id) DO UPDATE
SET namespace = excluded.namespace, secret_hash = excluded.secret_hash, scopes = excluded.scopes, expires_at = NULL, revoked_at = NULL
RETURNING key_id;

-- name: find_api_key
-- What the api caches for a few seconds. Expiry and revocation are judged by the database's clock.
SELECT k.key_id, k.namespace, k.secret_hash, k.scopes,
    (k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())) AS usable
FROM api_keys AS k
WHERE k.key_id = %(key_id)s::text;

-- name: create_api_key
INSERT INTO api_keys (key_id, namespace, name, secret_hash, scopes, expires_at)
VALUES (%(key_id)s::text, %(namespace)s::text, %(name)s::text, %(secret_hash)s::bytea, %(scopes)s::text[],
    %(expires_at)s::timestamptz)
ON CONFLICT (key_id) DO NOTHING
RETURNING key_id, name, scopes, created_at, expires_at, revoked_at;

-- name: list_api_keys
SELECT k.key_id, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at
FROM api_keys AS k
WHERE k.namespace = %(namespace)s::text
    AND (k.created_at, k.key_id) < (%(before_created_at)s::timestamptz, %(before_key_id)s::text)
ORDER BY k.created_at DESC, k.key_id DESC
LIMIT %(page)s::bigint;

-- name: revoke_api_key
-- Revoking twice keeps the first time. No row back: there is no such key.
UPDATE api_keys AS k
SET revoked_at = coalesce(k.revoked_at, now())
WHERE k.namespace = %(namespace)s::text AND k.key_id = %(key_id)s::text
RETURNING k.key_id;

-- name: find_secrets_of_other_keys
-- Secrets that are not encrypted under the newest key, a page in primary key order.
SELECT s.namespace, s.name, s.key_id, s.encrypted_value
FROM secrets AS s
WHERE s.key_id <> %(key_id)s::text AND (s.namespace, s.name) > (%(after_namespace)s::text, %(after_name)s::text)
ORDER BY s.namespace, s.name
LIMIT 100;

-- name: reencrypt_secret
-- Only if it is still what was read: a rotation in between wins.
UPDATE secrets AS s
SET encrypted_value = %(encrypted_value)s::bytea, key_id = %(key_id)s::text
WHERE s.namespace = %(namespace)s::text AND s.name = %(name)s::text AND s.encrypted_value = %(old_value)s::bytea
RETURNING s.name;
