-- What endpoints take at a time: set by callers, read by callers. The engine's side is in queue.sql.

-- name: create_endpoint_flow
INSERT INTO endpoint_flow (endpoint_id) VALUES (%(endpoint_id)s::uuid) ON CONFLICT (endpoint_id) DO NOTHING RETURNING endpoint_id;

-- name: set_endpoint_limits
-- A new rate begins with a full bucket. Without a circuit breaker nothing is left of an open circuit.
UPDATE endpoint_flow AS f
SET is_limited = %(max_in_flight)s::integer IS NOT NULL OR %(rate_per_sec)s::double precision IS NOT NULL
        OR %(failure_rate)s::double precision IS NOT NULL,
    max_in_flight = %(max_in_flight)s::integer,
    rate_per_sec = %(rate_per_sec)s::double precision,
    burst = %(burst)s::integer,
    tokens = CASE WHEN f.rate_per_sec IS NULL THEN coalesce(%(burst)s::integer, 0) ELSE f.tokens END,
    tokens_at = CASE WHEN f.rate_per_sec IS NULL THEN now() ELSE f.tokens_at END,
    failure_rate = %(failure_rate)s::double precision,
    minimum_attempts = %(minimum_attempts)s::integer,
    window_ms = %(window_ms)s::bigint,
    open_ms = %(open_ms)s::bigint,
    circuit = CASE WHEN %(failure_rate)s::double precision IS NULL THEN 'CLOSED' ELSE f.circuit END,
    closed_until = CASE WHEN %(failure_rate)s::double precision IS NULL AND f.closed_by = 'CIRCUIT' THEN NULL ELSE f.closed_until END
WHERE f.endpoint_id = %(endpoint_id)s::uuid
RETURNING f.endpoint_id;

-- name: pause_endpoint
-- No row back: it is deleted, and nobody could resume it. The lock makes a deletion that is under way come first or after.
-- An api of the version before makes endpoints without a row here.
WITH p AS MATERIALIZED (
    SELECT p.endpoint_id FROM endpoints AS p WHERE p.endpoint_id = %(endpoint_id)s::uuid AND p.deleted_at IS NULL FOR UPDATE
)
INSERT INTO endpoint_flow (endpoint_id, paused_at) SELECT p.endpoint_id, now() FROM p
ON CONFLICT (endpoint_id) DO UPDATE SET paused_at = coalesce(endpoint_flow.paused_at, excluded.paused_at)
RETURNING endpoint_id;

-- name: lift_pause
-- Of an endpoint that is being deleted: nobody could resume it. A circuit and a Retry-After end by themselves.
UPDATE endpoint_flow AS f
SET paused_at = NULL
WHERE f.endpoint_id = %(endpoint_id)s::uuid AND f.paused_at IS NOT NULL
RETURNING f.endpoint_id;

-- name: resume_endpoint
UPDATE endpoint_flow AS f
SET paused_at = NULL, circuit = 'CLOSED', window_started_at = now(), window_attempts = 0, window_failures = 0,
    closed_until = NULL, closed_by = NULL
WHERE f.endpoint_id = %(endpoint_id)s::uuid
RETURNING f.endpoint_id;

-- name: get_endpoint_flows
SELECT g.endpoint_id, g.max_in_flight, g.rate_per_sec, g.burst, g.failure_rate, g.minimum_attempts, g.window_ms, g.open_ms,
    g.is_limited, g.paused_at, g.in_flight, g.circuit, g.closed_until, g.closed_by
FROM endpoint_gates AS g
WHERE g.endpoint_id = ANY (%(endpoint_ids)s::uuid[]);
