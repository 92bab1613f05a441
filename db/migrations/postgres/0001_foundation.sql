-- What the database can hold it holds: one live operation per host, FENCED only with a proof of that generation, events without
-- gaps per host. The words in the checks are those of the API.

CREATE TABLE segments (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    description text NOT NULL,
    policy jsonb NOT NULL,
    suspension text CHECK (suspension <> ''),
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- One row. The suspension of all hosts, if there is one.
CREATE TABLE everything (
    one bigint PRIMARY KEY CHECK (one = 1),
    suspension text CHECK (suspension <> '')
);

INSERT INTO everything (one) VALUES (1);

CREATE TABLE methods (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    resource text NOT NULL CHECK (resource IN ('power', 'storage', 'network', 'workloads', 'query', 'heartbeat')),
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

-- One row. Counts the changes of plans and methods, so that a process that remembers them can tell whether they have changed.
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
    -- In which of the configured clouds or clusters its workloads live, and by what name it is known there if that is not its own.
    cloud text,
    known_as text,
    host_type text,
    zone text NOT NULL,
    labels jsonb NOT NULL,
    parameters jsonb NOT NULL,
    -- What each source saw, and what that comes to. It is written with every report, so it is text like the body of an operation.
    sources text NOT NULL CHECK (sources <> ''),
    failure_state text NOT NULL CHECK (failure_state IN ('UP', 'UNREACHABLE', 'UNKNOWN')),
    failure_source text,
    failure_observed_at timestamptz,
    failure_since timestamptz,
    fencing_state text NOT NULL CHECK (fencing_state IN ('UNFENCED', 'FENCED')),
    generation bigint NOT NULL CHECK (generation >= 0),
    -- What FENCED rests on, as the rules see it. The three below are taken from it for queries, and so that the foreign key can demand
    -- that one of the proofs which made the host FENCED exists.
    fence text CHECK (fence <> ''),
    fenced_generation bigint CHECK (fenced_generation <= generation),
    fenced_proof text,
    fenced_at timestamptz,
    -- Whether something has begun for it since it fell silent: it is not fenced without being asked then.
    is_silence_answered boolean NOT NULL,
    -- What sources say is wrong with it. The two below are taken from it: the condition that holds scheduling, and since when there is one for
    -- which its segment fences it.
    conditions text CHECK (conditions <> ''),
    held_by_condition text,
    ill_since timestamptz,
    -- Its own suspension; its segment may have one, and all hosts may.
    suspension text CHECK (suspension <> ''),
    -- How often it was fenced lately, and since when it is in quarantine.
    flapping text CHECK (flapping <> ''),
    quarantined_at timestamptz,
    -- Which of its problems come too often, and since when one does.
    alarms text CHECK (alarms <> ''),
    alarmed_at timestamptz,
    -- When the storm brake last held a fence of it.
    braked_at timestamptz,
    -- The crash dump that it writes.
    kdump text CHECK (kdump <> ''),
    -- Until when something may have been released to it, and until when it may last have been switched off.
    released_at timestamptz,
    last_off_at timestamptz,
    -- Written at every step, so text like the body of an operation.
    applied_fencing text NOT NULL CHECK (applied_fencing <> ''),
    in_flight text NOT NULL CHECK (in_flight <> ''),
    event_sequence bigint NOT NULL,
    -- Whether it was added by itself, because its platform named it, and since when its platform has not named it.
    is_adopted boolean NOT NULL DEFAULT false,
    left_at timestamptz,
    -- When time alone will change something.
    wake_at timestamptz,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK ((fencing_state = 'FENCED')
        = (fence IS NOT NULL AND fenced_generation IS NOT NULL AND fenced_proof IS NOT NULL AND fenced_at IS NOT NULL)),
    CHECK ((fence IS NULL) = (fenced_generation IS NULL)),
    CHECK ((fenced_generation IS NULL) = (fenced_proof IS NULL))
) WITH (toast_tuple_target = 4080, fillfactor = 80);

-- Lists of hosts are by name: what a filter asks for stands before it, so that a filter that no host passes reads no host.
CREATE INDEX hosts_by_segment ON hosts (segment_id, name);
CREATE INDEX hosts_by_zone ON hosts (zone, name);
CREATE INDEX hosts_by_host_type ON hosts (host_type, name) WHERE host_type IS NOT NULL;
CREATE INDEX hosts_by_backend ON hosts (backend, name);
CREATE INDEX hosts_by_generation ON hosts (generation, name);
-- Observers look a host up by what its backend calls it, which is its own name unless it says otherwise.
CREATE UNIQUE INDEX hosts_by_cloud ON hosts (cloud, (coalesce(known_as, name))) WHERE cloud IS NOT NULL;
CREATE INDEX hosts_by_wake_at ON hosts (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX hosts_by_created_at ON hosts (created_at, id);
CREATE INDEX hosts_by_updated_at ON hosts (updated_at, id);
-- The few of which something is wrong, among the many that are well.
CREATE INDEX hosts_quarantined_by_name ON hosts (name) WHERE quarantined_at IS NOT NULL;
CREATE INDEX hosts_alarmed_by_name ON hosts (name) WHERE alarmed_at IS NOT NULL;
CREATE INDEX hosts_suspended_by_name ON hosts (name) WHERE suspension IS NOT NULL;
CREATE INDEX hosts_fenced_by_name ON hosts (name) WHERE fencing_state = 'FENCED';
CREATE INDEX hosts_unreachable_by_name ON hosts (name) WHERE failure_state = 'UNREACHABLE';
CREATE INDEX hosts_unknown_by_name ON hosts (name) WHERE failure_state = 'UNKNOWN';

CREATE TABLE operations (
    id uuid PRIMARY KEY,
    host_id uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('fence', 'rejoin', 'evacuation')),
    status text NOT NULL CHECK (status IN ('running', 'held', 'needs_operator', 'succeeded', 'cancelled')),
    -- Whether it is a fence that waits for its turn, and for nothing else.
    is_in_line boolean NOT NULL,
    generation bigint NOT NULL,
    -- The operation as the rules see it: stages, tasks, attempts, proofs. It is written at every step and never read by SQL, so it is text,
    -- and stays in the row uncompressed up to a large size; parts that hardly ever change are kept in `methods`.
    body text NOT NULL CHECK (body <> ''),
    methods text NOT NULL CHECK (methods <> ''),
    -- Of an evacuation: its moves, as others have to know them.
    moves text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    finished_at timestamptz,
    -- What a proof refers to.
    UNIQUE (id, host_id, generation),
    CHECK ((finished_at IS NULL) = (status IN ('running', 'held', 'needs_operator')))
) WITH (toast_tuple_target = 4080, fillfactor = 80);

ALTER TABLE operations ALTER COLUMN methods SET STORAGE EXTERNAL;

-- The condition is worded differently from that of the index below: a planner that takes both for empty could use that index for a host's
-- live operation, and read all live operations for each host.
CREATE UNIQUE INDEX operations_one_live_per_host ON operations (host_id)
    WHERE finished_at IS NULL;
-- An evacuation is of the generation of its fence; a fence and a rejoin take one of their own.
CREATE UNIQUE INDEX operations_once_per_generation ON operations (host_id, generation) WHERE kind <> 'evacuation';
CREATE INDEX operations_by_host ON operations (host_id, generation);
CREATE INDEX operations_by_created_at ON operations (created_at, id);
CREATE INDEX operations_by_updated_at ON operations (updated_at, id);
-- The few that are not over, among the many that are.
CREATE INDEX operations_live_by_created_at ON operations (created_at, id)
    WHERE status IN ('running', 'held', 'needs_operator');

CREATE TABLE proofs (
    host_id uuid NOT NULL,
    generation bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('power.off', 'storage.fence', 'network.fence', 'self-fencing', 'kdump', 'operator')),
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
    -- What is counted of it, if anything is.
    problem text CHECK (problem IN ('failed', 'fenced', 'returned', 'condition')),
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

-- How a segment's hosts have changed.
CREATE INDEX changes_by_segment ON events (segment_id, occurred_at) WHERE kind = 'host.failure_state';
-- What has happened to a host, and which hosts it has happened to.
CREATE INDEX problems_by_host ON events (host_id, occurred_at) WHERE problem IS NOT NULL;
CREATE INDEX problems_by_time ON events (occurred_at, segment_id, host_id, problem) WHERE problem IS NOT NULL;

CREATE INDEX events_without_sequence ON events (position) WHERE sequence IS NULL;

-- A change of a host in one statement begins with this: it ends the statement if the host's row has changed since it was read without a
-- lock, and locks the row. If the change has events, it returns the number before theirs; null if another transaction is numbering events,
-- or if events that were committed earlier have no numbers yet. The server itself holds the lock on the numbers until the statement is
-- committed: no client can keep the others waiting.
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
    -- The process that wrote the row publishes it at once; from this moment on any process may.
    available_at timestamptz NOT NULL,
    -- The first such moment: an older row is one that no process could publish.
    waits_since timestamptz NOT NULL,
    -- Later than this no worker would be allowed to act on it.
    expires_at timestamptz NOT NULL,
    tries bigint NOT NULL
);

CREATE INDEX outbox_by_available_at ON outbox (available_at);

CREATE TABLE device_leases (
    device text PRIMARY KEY,
    operation_id uuid NOT NULL,
    attempt bigint NOT NULL,
    until timestamptz NOT NULL
);

CREATE INDEX device_leases_by_attempt ON device_leases (operation_id, attempt);

-- What fences that were not asked for hold while they are under way. Of each name there are so many: the numbers from 1 on.
CREATE TABLE permits (
    name text NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    operation_id uuid NOT NULL REFERENCES operations (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    -- Whether it stays when its operation is over.
    is_kept boolean NOT NULL,
    PRIMARY KEY (name, number)
);

CREATE INDEX permits_by_operation ON permits (operation_id);

-- Requests that their callers may repeat: what was asked, what was changed for it, and what was answered.
CREATE TABLE idempotency_keys (
    caller text NOT NULL,
    key text NOT NULL,
    -- Of method, path and body: a key that comes again with another request is a mistake.
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

-- The engines, and when each last said that it runs.
CREATE TABLE engines (
    -- Tells it from all others, also from an earlier one with an equal name.
    id text PRIMARY KEY,
    name text NOT NULL,
    version text NOT NULL,
    seen_at timestamptz NOT NULL
);

-- Browsers that are signed in.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    -- SHA-256 of what the browser's cookie holds, in hexadecimal.
    digest text NOT NULL UNIQUE,
    -- The token that was signed in with, encrypted with a key that the cookie alone holds.
    sealed text NOT NULL,
    actor text NOT NULL,
    address text,
    signed_in_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE INDEX sessions_by_actor ON sessions (actor, signed_in_at);
CREATE INDEX sessions_by_expires_at ON sessions (expires_at);

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

-- Who is told of events, how far they have got, and what became of each delivery.

CREATE TABLE subscriptions (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    description text NOT NULL,
    url text NOT NULL,
    format text NOT NULL CHECK (format IN ('cloudevents', 'slack', 'mattermost', 'teams')),
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

-- Brokers that every event is told to: how far each has got.

CREATE TABLE event_sinks (
    name text PRIMARY KEY,
    -- Every event with a number up to this one was told.
    after_sequence bigint NOT NULL CHECK (after_sequence >= 0),
    -- The engine that sends the events, as long as it renews this in time; for a new event sink empty, with the time when it was added.
    held_by text NOT NULL,
    held_until timestamptz NOT NULL
);

-- What each method's device last answered when it was asked for its state.

CREATE TABLE method_checks (
    id uuid PRIMARY KEY,
    method_id uuid NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    -- None where the question is one for every host.
    host_id uuid REFERENCES hosts (id) ON DELETE CASCADE,
    -- What is asked, in short: when the method or the host's values change, the row is made anew.
    question uuid NOT NULL,
    -- As in device_leases.
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

-- Who does what only one engine at a time should.
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

-- Methods that are filled in for one host as a method is for another: what they prove of one would be taken for a proof of the other.
-- Found while the questions to devices are brought up to date; looked at again before it counts.

CREATE TABLE shared_devices (
    id uuid PRIMARY KEY,
    host_id uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    method_id uuid NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    with_host_id uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    with_method_id uuid NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    UNIQUE (host_id, method_id),
    CHECK (host_id <> with_host_id)
);

CREATE INDEX shared_devices_by_method ON shared_devices (method_id);
CREATE INDEX shared_devices_by_with_host ON shared_devices (with_host_id);
CREATE INDEX shared_devices_by_with_method ON shared_devices (with_method_id);

-- Cascades from hosts run this statement whether a row goes or not; only rows that come and go are counted.
CREATE TRIGGER shared_devices_are_counted AFTER INSERT OR DELETE ON shared_devices
    FOR EACH ROW EXECUTE FUNCTION count_configuration();

-- The values that hosts give for the parameters of methods, kept by triggers, so that hosts with equal values are found.

CREATE TABLE host_parameters (
    host_id uuid NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    -- The method's name: a host may name one that is not there yet.
    method text NOT NULL,
    -- The SHA-256 of it: an index takes no long values.
    given bytea NOT NULL,
    PRIMARY KEY (host_id, method)
);

CREATE INDEX host_parameters_by_given ON host_parameters (method, given);

CREATE FUNCTION keep_host_parameters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM host_parameters WHERE host_id = NEW.id;
    INSERT INTO host_parameters (host_id, method, given)
        SELECT NEW.id, key, sha256(convert_to(value::text, 'UTF8')) FROM jsonb_each(NEW.parameters);
    RETURN NULL;
END $$;

CREATE TRIGGER host_parameters_are_kept AFTER INSERT ON hosts
    FOR EACH ROW WHEN (NEW.parameters <> '{}') EXECUTE FUNCTION keep_host_parameters();
CREATE TRIGGER host_parameters_are_changed AFTER UPDATE OF parameters ON hosts
    FOR EACH ROW WHEN (OLD.parameters <> NEW.parameters) EXECUTE FUNCTION keep_host_parameters();
