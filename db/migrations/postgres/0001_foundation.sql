-- What the database can hold it holds: one live operation per host, FENCED only with a proof of that generation, events without
-- gaps per host. The words in the checks are those of the API.

CREATE TABLE segments (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    description text NOT NULL,
    policy jsonb NOT NULL,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE methods (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    resource text NOT NULL CHECK (resource IN ('power', 'storage', 'network', 'workloads')),
    driver text NOT NULL,
    parameters jsonb NOT NULL,
    secrets jsonb NOT NULL,
    zone text,
    times jsonb NOT NULL,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE plans (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    scope_kind text NOT NULL CHECK (scope_kind IN ('default', 'host_type', 'host')),
    -- '' for the default, so that the uniqueness below holds for it as well.
    scope_value text NOT NULL CHECK ((scope_kind = 'default') = (scope_value = '')),
    stages jsonb NOT NULL,
    sufficient_sets jsonb NOT NULL,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (scope_kind, scope_value)
);

-- One row. Counts the changes of plans and methods, so that whoever remembers them can tell whether they are still the same.
CREATE TABLE configuration (
    one bigint PRIMARY KEY CHECK (one = 1),
    revision bigint NOT NULL
);

INSERT INTO configuration (one, revision) VALUES (1, 1);

CREATE FUNCTION count_configuration() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE configuration SET revision = revision + 1 WHERE one = 1;
    RETURN NULL;
END $$;

CREATE TRIGGER methods_are_counted AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON methods
    FOR EACH STATEMENT EXECUTE FUNCTION count_configuration();
CREATE TRIGGER plans_are_counted AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON plans
    FOR EACH STATEMENT EXECUTE FUNCTION count_configuration();

CREATE TABLE hosts (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    segment_id uuid NOT NULL REFERENCES segments (id),
    backend text NOT NULL CHECK (backend IN ('nova', 'kubernetes', 'none')),
    host_type text,
    zone text NOT NULL,
    parameters jsonb NOT NULL,
    failure_state text NOT NULL CHECK (failure_state IN ('UP', 'UNREACHABLE', 'UNKNOWN')),
    failure_source text,
    failure_observed_at timestamptz,
    failure_since timestamptz,
    boot jsonb,
    fencing_state text NOT NULL CHECK (fencing_state IN ('UNFENCED', 'FENCED')),
    generation bigint NOT NULL CHECK (generation >= 0),
    fenced_generation bigint CHECK (fenced_generation <= generation),
    -- One of the proofs that made the host FENCED; the foreign key below demands that it exists.
    fenced_proof text,
    fenced_at timestamptz,
    boot_at_fence text,
    needs_boot boolean NOT NULL,
    proof_spent boolean NOT NULL,
    -- Written at every step, so text like the body of an operation.
    standing text NOT NULL CHECK (standing <> ''),
    in_flight text NOT NULL CHECK (in_flight <> ''),
    event_sequence bigint NOT NULL,
    -- When time alone will change something.
    wake_at timestamptz,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK ((fencing_state = 'FENCED')
        = (fenced_generation IS NOT NULL AND fenced_proof IS NOT NULL AND fenced_at IS NOT NULL)),
    CHECK ((fenced_generation IS NULL) = (fenced_proof IS NULL))
) WITH (toast_tuple_target = 4080, fillfactor = 80);

CREATE INDEX hosts_by_segment ON hosts (segment_id);
CREATE INDEX hosts_by_wake_at ON hosts (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX hosts_by_created_at ON hosts (created_at, id);
CREATE INDEX hosts_by_updated_at ON hosts (updated_at, id);
-- The few of which something is wrong, among the many that are well.
CREATE INDEX hosts_fenced_by_name ON hosts (name) WHERE fencing_state = 'FENCED';
CREATE INDEX hosts_unreachable_by_name ON hosts (name) WHERE failure_state = 'UNREACHABLE';

CREATE TABLE operations (
    id uuid PRIMARY KEY,
    host_id uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('fence', 'rejoin', 'evacuation')),
    status text NOT NULL CHECK (status IN ('running', 'needs_operator', 'succeeded', 'cancelled')),
    generation bigint NOT NULL,
    -- The operation as the rules see it: stages, tasks, attempts, proofs. It is written at every step, so it is text (nobody looks
    -- into it by SQL) and stays in the row uncompressed up to a good size; what hardly ever changes is kept apart in `methods`.
    body text NOT NULL CHECK (body <> ''),
    methods text NOT NULL CHECK (methods <> ''),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    finished_at timestamptz,
    UNIQUE (host_id, generation),
    -- What a proof refers to.
    UNIQUE (id, host_id, generation),
    CHECK ((finished_at IS NULL) = (status IN ('running', 'needs_operator')))
) WITH (toast_tuple_target = 4080, fillfactor = 80);

ALTER TABLE operations ALTER COLUMN methods SET STORAGE EXTERNAL;

-- By another word for the same than the index below: a planner to whom both look empty could take that one for a host's live operation,
-- and read all that are live for each host.
CREATE UNIQUE INDEX operations_one_live_per_host ON operations (host_id)
    WHERE finished_at IS NULL;
CREATE INDEX operations_by_created_at ON operations (created_at, id);
CREATE INDEX operations_by_updated_at ON operations (updated_at, id);
-- The few that are not over, among the many that are.
CREATE INDEX operations_live_by_created_at ON operations (created_at, id)
    WHERE status IN ('running', 'needs_operator');

CREATE TABLE proofs (
    host_id uuid NOT NULL,
    generation bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('power.off', 'storage.fence', 'network.fence', 'self-fencing', 'operator')),
    operation_id uuid NOT NULL,
    source text NOT NULL,
    observed_at timestamptz NOT NULL,
    detail text NOT NULL,
    PRIMARY KEY (host_id, generation, kind),
    FOREIGN KEY (operation_id, host_id, generation) REFERENCES operations (id, host_id, generation) ON DELETE CASCADE
);

ALTER TABLE hosts ADD CONSTRAINT hosts_fenced_only_with_a_proof
    FOREIGN KEY (id, fenced_generation, fenced_proof) REFERENCES proofs (host_id, generation, kind);

-- The foreign key above keeps the proof, not the host: a host's own deletion would take both.
CREATE FUNCTION refuse_to_delete_a_fenced_host() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE check_violation USING MESSAGE = 'a FENCED host stays', CONSTRAINT = 'hosts_fenced_stay';
END $$;

CREATE TRIGGER hosts_fenced_stay BEFORE DELETE ON hosts
    FOR EACH ROW WHEN (OLD.fencing_state = 'FENCED') EXECUTE FUNCTION refuse_to_delete_a_fenced_host();

CREATE TABLE events (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Given after the commit, in the order of the commits, so that a reader who has seen N has seen everything before it.
    sequence bigint UNIQUE,
    id uuid NOT NULL UNIQUE,
    -- None where something of Ringfence's own has changed, such as a subscription.
    host_id uuid,
    host text,
    segment_id uuid,
    host_sequence bigint CHECK (host_sequence >= 1),
    kind text NOT NULL,
    generation bigint,
    occurred_at timestamptz NOT NULL,
    data jsonb NOT NULL,
    UNIQUE (host_id, host_sequence),
    CHECK ((host_id IS NULL) = (kind LIKE 'subscription.%')),
    CHECK ((host_id IS NULL) = (host IS NULL) AND (host_id IS NULL) = (segment_id IS NULL)
        AND (host_id IS NULL) = (host_sequence IS NULL) AND (host_id IS NULL) = (generation IS NULL))
);

CREATE FUNCTION refuse_a_gap_between_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM events WHERE host_id = NEW.host_id AND host_sequence = NEW.host_sequence - 1) THEN
        RAISE check_violation USING MESSAGE = 'events of a host have no gap', CONSTRAINT = 'events_have_no_gap';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER events_have_no_gap BEFORE INSERT ON events
    FOR EACH ROW WHEN (NEW.host_sequence > 1) EXECUTE FUNCTION refuse_a_gap_between_events();

CREATE INDEX events_without_sequence ON events (position) WHERE sequence IS NULL;

-- A change of a host that is one statement begins with this: it ends the statement unless the host's row is still the one that was read
-- without a lock, and locks it. If the change tells of something it gives the number before those of its events; none if somebody else is giving numbers,
-- or if events that were committed earlier wait for theirs. The lock on the numbers is held until the statement is committed, by the
-- server itself: no client can keep the others waiting.
CREATE FUNCTION begin_change_upon(changed uuid, version text, tells boolean) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM hosts WHERE id = changed AND xmin = version::xid FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'RF001', MESSAGE = 'the host has changed since it was read';
    END IF;
    IF NOT tells OR NOT pg_try_advisory_xact_lock(7411938025476) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM events WHERE sequence IS NULL) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify('ringfence_events', '');
    -- Each statement of a function sees what is committed when it begins: with the lock, that is every number there is.
    RETURN (SELECT coalesce(max(sequence), 0) FROM events);
END $$;

-- And ends with this, if something had to be so for it.
CREATE FUNCTION end_change_unless(so boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT so THEN
        RAISE EXCEPTION USING ERRCODE = 'RF001', MESSAGE = 'what the change needs is not so any more';
    END IF;
    RETURN true;
END $$;

CREATE TABLE outbox (
    id uuid PRIMARY KEY,
    resource text NOT NULL,
    zone text NOT NULL,
    payload text NOT NULL CHECK (payload <> ''),
    trace text,
    -- Whoever wrote the row publishes it at once; from this moment on anyone may.
    available_at timestamptz NOT NULL,
    -- The first such moment: what is older than this is a row that nobody could publish.
    waits_since timestamptz NOT NULL,
    -- Later than this nobody would be let act on it.
    expires_at timestamptz NOT NULL,
    tries bigint NOT NULL
);

CREATE INDEX outbox_by_available_at ON outbox (available_at);

CREATE TABLE device_claims (
    device text PRIMARY KEY,
    operation_id uuid NOT NULL,
    attempt bigint NOT NULL,
    until timestamptz NOT NULL
);

CREATE INDEX device_claims_by_attempt ON device_claims (operation_id, attempt);

-- Requests that their callers may repeat: what was asked, what was changed for it, and what was answered.
CREATE TABLE idempotency_keys (
    caller text NOT NULL,
    key text NOT NULL,
    -- Of method, path and body: the same key with another request is a mistake.
    digest text NOT NULL,
    -- The try that carries the request out. It commits a change only while the key is its own.
    holder uuid NOT NULL,
    -- Later than this another try may take the key over, unless there is a receipt.
    held_until timestamptz NOT NULL,
    -- Written in the transaction of the change.
    receipt jsonb,
    answer jsonb,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (caller, key)
);

CREATE INDEX idempotency_keys_by_created_at ON idempotency_keys (created_at);

CREATE TABLE audit (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    origin text,
    request_id text,
    -- Compared byte by byte, so that an index finds what begins with a word.
    action text COLLATE "C" NOT NULL,
    target text,
    host_id uuid,
    detail jsonb NOT NULL
);

CREATE INDEX audit_by_at ON audit (at, position);
CREATE INDEX audit_by_host ON audit (host_id, at, position) WHERE host_id IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor, at, position);
CREATE INDEX audit_by_action ON audit (action, at, position);
CREATE INDEX audit_by_request ON audit (request_id, at, position) WHERE request_id IS NOT NULL;

-- The one way to remove entries, for retention. In one transaction it puts a bound here, deletes entries that are older than
-- the bound, and takes the bound away again. A bound cannot be committed: what it refers to never exists.
CREATE TABLE audit_retention (
    older_than timestamptz NOT NULL,
    never bigint NOT NULL DEFAULT -1 CHECK (never = -1)
        CONSTRAINT audit_retention_ends_with_its_transaction REFERENCES audit (position) DEFERRABLE INITIALLY DEFERRED
);

CREATE FUNCTION refuse_to_change_the_audit_trail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT FROM audit_retention WHERE OLD.at < older_than) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE check_violation USING MESSAGE = 'the audit trail stays as it was written', CONSTRAINT = 'audit_stays';
END $$;

CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_to_change_the_audit_trail();
CREATE TRIGGER audit_stays_whole BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_audit_trail();

-- What a later migration says of itself: builds of the schema `compatible_from`, and those after it, can go on beside it. One that says
-- nothing ends older builds.
CREATE TABLE schema_compatibility (
    version bigint PRIMARY KEY,
    compatible_from bigint NOT NULL CHECK (compatible_from < version)
);
