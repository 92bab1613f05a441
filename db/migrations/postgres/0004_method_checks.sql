-- What each method's device last answered when it was asked for its state, who does what only one engine at a time should, and up
-- to where events have been removed.

CREATE TABLE method_checks (
    id uuid PRIMARY KEY,
    method_id uuid NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    -- None where the question is the same for every host.
    host_id uuid REFERENCES hosts (id) ON DELETE CASCADE,
    -- What is asked, in short: when the method or the host's values change, the row is made anew.
    question uuid NOT NULL,
    -- As in device_claims.
    device text,
    next_at timestamptz NOT NULL,
    checked_at timestamptz,
    outcome text CHECK (outcome IN ('confirmed', 'refused', 'unknown', 'worker_missing')),
    -- The observed state.
    state text,
    detail text,
    worker text,
    took_ms bigint,
    failing_since timestamptz,
    -- Answers in a row that no worker gave.
    missed bigint NOT NULL,
    CHECK ((checked_at IS NULL) = (outcome IS NULL)),
    CHECK ((failing_since IS NULL) = (outcome IS NULL OR outcome = 'confirmed'))
);

CREATE UNIQUE INDEX method_checks_once_per_host ON method_checks (method_id, host_id) WHERE host_id IS NOT NULL;
CREATE UNIQUE INDEX method_checks_once_for_all ON method_checks (method_id) WHERE host_id IS NULL;
CREATE INDEX method_checks_by_next_at ON method_checks (next_at);
CREATE INDEX method_checks_by_host ON method_checks (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX method_checks_failing ON method_checks (method_id) WHERE failing_since IS NOT NULL;

CREATE TABLE leases (
    name text PRIMARY KEY,
    held_by text NOT NULL,
    held_until timestamptz NOT NULL
);

-- One row. Events with a number up to this one may be missing; those above are all there.
CREATE TABLE events_removed (
    one bigint PRIMARY KEY CHECK (one = 1),
    up_to bigint NOT NULL CHECK (up_to >= 0)
);

INSERT INTO events_removed (one, up_to) VALUES (1, 0);
