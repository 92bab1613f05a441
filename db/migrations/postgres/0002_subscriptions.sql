-- Who is told of events, how far they have got, and what became of each delivery.

CREATE TABLE subscriptions (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    description text NOT NULL,
    url text NOT NULL,
    filter jsonb NOT NULL,
    enabled boolean NOT NULL,
    disabled_reason text,
    -- What the secrets are derived from. The secrets themselves are kept nowhere.
    secret_versions jsonb NOT NULL,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- Every event with a number up to this one was delivered, or does not pass the filter.
    after_sequence bigint NOT NULL CHECK (after_sequence >= 0),
    -- The engine that delivers, as long as it says so again in time.
    held_by text,
    held_until timestamptz,
    CHECK ((held_by IS NULL) = (held_until IS NULL)),
    CHECK (disabled_reason IS NULL OR NOT enabled)
);

CREATE TABLE deliveries (
    id uuid PRIMARY KEY,
    subscription_id uuid NOT NULL REFERENCES subscriptions (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('event', 'redelivery', 'test')),
    -- Of the event; a test has none.
    sequence bigint,
    message_id uuid NOT NULL,
    event_type text NOT NULL,
    host text,
    status text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    tries bigint NOT NULL,
    created_at timestamptz NOT NULL,
    tried_at timestamptz,
    -- When it is tried next.
    next_at timestamptz,
    -- The HTTP status of the last answer.
    answer bigint,
    detail text,
    took_ms bigint,
    CHECK ((sequence IS NULL) = (kind = 'test')),
    CHECK ((next_at IS NOT NULL) = (status = 'pending'))
);

CREATE UNIQUE INDEX deliveries_once_per_event ON deliveries (subscription_id, sequence) WHERE kind = 'event';
CREATE INDEX deliveries_by_subscription ON deliveries (subscription_id, created_at, id);
CREATE INDEX deliveries_asked_for ON deliveries (next_at) WHERE status = 'pending' AND kind <> 'event';
CREATE INDEX deliveries_by_created_at ON deliveries (created_at) WHERE status <> 'pending';
