-- What an endpoint takes at a time: limits and pauses that callers set, and the state that all dispatchers share.

-- step: endpoint_flow both
CREATE TABLE IF NOT EXISTS endpoint_flow (
    endpoint_id       UUID NOT NULL,
    is_limited        BOOLEAN NOT NULL DEFAULT false,
    max_in_flight     INTEGER,
    rate_per_sec      DOUBLE PRECISION,
    burst             INTEGER,
    failure_rate      DOUBLE PRECISION,
    minimum_attempts  INTEGER,
    window_ms         BIGINT,
    open_ms           BIGINT,
    paused_at         TIMESTAMPTZ,
    in_flight         INTEGER NOT NULL DEFAULT 0,
    tokens            DOUBLE PRECISION NOT NULL DEFAULT 0,
    tokens_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    circuit           TEXT NOT NULL DEFAULT 'CLOSED',
    window_started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    window_attempts   INTEGER NOT NULL DEFAULT 0,
    window_failures   INTEGER NOT NULL DEFAULT 0,
    closed_until      TIMESTAMPTZ,
    closed_by         TEXT,
    CONSTRAINT endpoint_flow_pkey PRIMARY KEY (endpoint_id),
    CONSTRAINT endpoint_flow_limited_ck
        CHECK (is_limited = (max_in_flight IS NOT NULL OR rate_per_sec IS NOT NULL OR failure_rate IS NOT NULL)),
    CONSTRAINT endpoint_flow_rate_ck CHECK ((rate_per_sec IS NULL) = (burst IS NULL)),
    CONSTRAINT endpoint_flow_breaker_ck CHECK (
        (failure_rate IS NULL) = (minimum_attempts IS NULL) AND (failure_rate IS NULL) = (window_ms IS NULL)
        AND (failure_rate IS NULL) = (open_ms IS NULL)),
    CONSTRAINT endpoint_flow_circuit_ck CHECK (circuit IN ('CLOSED', 'OPEN')),
    CONSTRAINT endpoint_flow_closed_ck CHECK (closed_by IN ('CIRCUIT', 'RETRY_AFTER'))
);

-- step: endpoint_flow_of_old_endpoints both
INSERT INTO endpoint_flow (endpoint_id) SELECT p.endpoint_id FROM endpoints AS p ON CONFLICT (endpoint_id) DO NOTHING;

-- step: endpoint_flow_storage pg
ALTER TABLE endpoint_flow SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- step: leases_counted_for both
ALTER TABLE leases ADD COLUMN IF NOT EXISTS counted_for UUID;

-- The gates as readers see them. `opens_in_ms`: 0 when something may be sent now, NULL when only an event can open it.
-- Claims compute `tokens` themselves, from the row they have locked.
-- step: endpoint_gates both
CREATE OR REPLACE VIEW endpoint_gates AS
SELECT g.endpoint_id, g.is_limited, g.max_in_flight, g.rate_per_sec, g.burst, g.failure_rate, g.minimum_attempts, g.window_ms,
    g.open_ms, g.paused_at, g.in_flight, g.circuit, g.closed_until, g.closed_by,
    CASE
        WHEN g.paused_at IS NOT NULL THEN NULL
        WHEN g.closed_until IS NOT NULL THEN extract(epoch FROM g.closed_until - now())::double precision * 1000
        WHEN g.in_flight >= coalesce(g.max_in_flight, 2147483647) THEN NULL
        WHEN g.circuit = 'HALF_OPEN' AND g.in_flight > 0 THEN NULL
        WHEN g.tokens < 1 THEN (g.wanted_tokens - g.tokens) / g.rate_per_sec * 1000
        ELSE 0
    END AS opens_in_ms
FROM (
    SELECT f.endpoint_id, f.is_limited, f.max_in_flight, f.rate_per_sec, f.burst, f.failure_rate, f.minimum_attempts,
        f.window_ms, f.open_ms, f.paused_at, f.in_flight,
        CASE WHEN f.circuit = 'OPEN' AND f.closed_until <= now() THEN 'HALF_OPEN' ELSE f.circuit END AS circuit,
        CASE WHEN f.closed_until > now() THEN f.closed_until END AS closed_until,
        CASE WHEN f.closed_until > now() THEN f.closed_by END AS closed_by,
        least(f.burst, f.tokens + extract(epoch FROM now() - f.tokens_at)::double precision * f.rate_per_sec) AS tokens,
        -- A hundredth of a second's worth at once: a fast rate is not to be claimed one by one.
        least(f.burst, greatest(1, f.rate_per_sec * 0.01)) AS wanted_tokens
    FROM endpoint_flow AS f
) AS g;
