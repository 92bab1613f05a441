-- What the database can hold it holds: one live operation per host, FENCED only with a proof of that generation, events without
-- gaps per host. The words in the checks are those of the API. Ids are text, moments are microseconds since 1970 in UTC, JSON is text.

CREATE TABLE segments (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    description text NOT NULL,
    policy text NOT NULL,
    suspension text CHECK (suspension <> ''),
    revision integer NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

-- One row. The suspension of all hosts, if there is one.
CREATE TABLE everything (
    one integer PRIMARY KEY CHECK (one = 1),
    suspension text CHECK (suspension <> '')
) STRICT;

INSERT INTO everything (one) VALUES (1);

CREATE TABLE methods (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    resource text NOT NULL CHECK (resource IN ('power', 'storage', 'network', 'workloads', 'query', 'heartbeat')),
    driver text NOT NULL,
    parameters text NOT NULL,
    secrets text NOT NULL,
    zone text,
    times text NOT NULL,
    revision integer NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL
) STRICT;

CREATE TABLE plans (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    scope_kind text NOT NULL CHECK (scope_kind IN ('default', 'host_type', 'host')),
    -- '' for the default, so that the uniqueness below holds for it as well.
    scope_value text NOT NULL CHECK ((scope_kind = 'default') = (scope_value = '')),
    stages text NOT NULL,
    sufficient_sets text NOT NULL,
    revision integer NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    UNIQUE (scope_kind, scope_value)
) STRICT;

-- One row. Counts the changes of plans and methods, so that a process that remembers them can tell whether they have changed.
CREATE TABLE configuration (
    one integer PRIMARY KEY CHECK (one = 1),
    revision integer NOT NULL
) STRICT;

INSERT INTO configuration (one, revision) VALUES (1, 1);

CREATE TRIGGER methods_added_are_counted AFTER INSERT ON methods
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TRIGGER methods_changed_are_counted AFTER UPDATE ON methods
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TRIGGER methods_removed_are_counted AFTER DELETE ON methods
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TRIGGER plans_added_are_counted AFTER INSERT ON plans
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TRIGGER plans_changed_are_counted AFTER UPDATE ON plans
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TRIGGER plans_removed_are_counted AFTER DELETE ON plans
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TABLE hosts (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    segment_id text NOT NULL REFERENCES segments (id),
    backend text NOT NULL CHECK (backend IN ('nova', 'kubernetes', 'none')),
    -- In which of the configured clouds or clusters its workloads live, and by what name it is known there if that is not its own.
    cloud text,
    known_as text,
    host_type text,
    zone text NOT NULL,
    labels text NOT NULL,
    parameters text NOT NULL,
    -- What each source saw, and what that comes to. It is written with every report, so it is text like the body of an operation.
    sources text NOT NULL CHECK (sources <> ''),
    failure_state text NOT NULL CHECK (failure_state IN ('UP', 'UNREACHABLE', 'UNKNOWN')),
    failure_source text,
    failure_observed_at integer,
    failure_since integer,
    fencing_state text NOT NULL CHECK (fencing_state IN ('UNFENCED', 'FENCED')),
    generation integer NOT NULL CHECK (generation >= 0),
    -- What FENCED rests on, as the rules see it. The three below are taken from it for queries, and so that the foreign key can demand
    -- that one of the proofs which made the host FENCED exists.
    fence text CHECK (fence <> ''),
    fenced_generation integer CHECK (fenced_generation <= generation),
    fenced_proof text,
    fenced_at integer,
    -- Whether something has begun for it since it fell silent: it is not fenced without being asked then.
    is_silence_answered integer NOT NULL CHECK (is_silence_answered IN (0, 1)),
    -- What sources say is wrong with it. The two below are taken from it: the condition that holds scheduling, and since when there is one for
    -- which its segment fences it.
    conditions text CHECK (conditions <> ''),
    held_by_condition text,
    ill_since integer,
    -- Its own suspension; its segment may have one, and all hosts may.
    suspension text CHECK (suspension <> ''),
    -- How often it was fenced lately, and since when it is in quarantine.
    flapping text CHECK (flapping <> ''),
    quarantined_at integer,
    -- Which of its problems come too often, and since when one does.
    alarms text CHECK (alarms <> ''),
    alarmed_at integer,
    -- When the storm brake last held a fence of it.
    braked_at integer,
    -- The crash dump that it writes.
    kdump text CHECK (kdump <> ''),
    -- Until when something may have been released to it, and until when it may last have been switched off.
    released_at integer,
    last_off_at integer,
    applied_fencing text NOT NULL,
    in_flight text NOT NULL,
    event_sequence integer NOT NULL,
    -- Whether it was added by itself, because its platform named it, and since when its platform has not named it.
    is_adopted integer NOT NULL DEFAULT 0 CHECK (is_adopted IN (0, 1)),
    left_at integer,
    -- When time alone will change something.
    wake_at integer,
    revision integer NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    CHECK ((fencing_state = 'FENCED')
        = (fence IS NOT NULL AND fenced_generation IS NOT NULL AND fenced_proof IS NOT NULL AND fenced_at IS NOT NULL)),
    CHECK ((fence IS NULL) = (fenced_generation IS NULL)),
    CHECK ((fenced_generation IS NULL) = (fenced_proof IS NULL)),
    CONSTRAINT hosts_fenced_only_with_a_proof
        FOREIGN KEY (id, fenced_generation, fenced_proof) REFERENCES proofs (host_id, generation, kind)
) STRICT;

-- Lists of hosts are by name: what a filter asks for stands before it, so that a filter that no host passes reads no host.
CREATE INDEX hosts_by_segment ON hosts (segment_id, name);
CREATE INDEX hosts_by_zone ON hosts (zone, name);
CREATE INDEX hosts_by_host_type ON hosts (host_type, name) WHERE host_type IS NOT NULL;
CREATE INDEX hosts_by_backend ON hosts (backend, name);
CREATE INDEX hosts_by_generation ON hosts (generation, name);
-- Observers look a host up by what its backend calls it, which is its own name unless it says otherwise.
CREATE UNIQUE INDEX hosts_by_cloud ON hosts (cloud, coalesce(known_as, name)) WHERE cloud IS NOT NULL;
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
    id text PRIMARY KEY,
    host_id text NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('fence', 'rejoin', 'evacuation')),
    status text NOT NULL CHECK (status IN ('running', 'held', 'needs_operator', 'succeeded', 'cancelled')),
    -- Whether it is a fence that waits for its turn, and for nothing else.
    is_in_line integer NOT NULL,
    generation integer NOT NULL,
    -- The operation as the rules see it: stages, tasks, attempts, proofs. It is written at every step; what hardly ever changes is kept
    -- apart in `methods`.
    body text NOT NULL CHECK (body <> ''),
    methods text NOT NULL CHECK (methods <> ''),
    -- Of an evacuation: its moves, as others have to know them.
    moves text,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    finished_at integer,
    -- What a proof refers to.
    UNIQUE (id, host_id, generation),
    CHECK ((finished_at IS NULL) = (status IN ('running', 'held', 'needs_operator')))
) STRICT;

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
    host_id text NOT NULL,
    generation integer NOT NULL,
    kind text NOT NULL CHECK (kind IN ('power.off', 'storage.fence', 'network.fence', 'self-fencing', 'kdump', 'operator')),
    operation_id text NOT NULL,
    source text NOT NULL,
    observed_at integer NOT NULL,
    detail text NOT NULL,
    PRIMARY KEY (host_id, generation, kind),
    FOREIGN KEY (operation_id, host_id, generation) REFERENCES operations (id, host_id, generation) ON DELETE CASCADE
) STRICT;

-- The foreign key above keeps the proof, not the host: a host's own deletion would take both.
CREATE TRIGGER hosts_fenced_stay BEFORE DELETE ON hosts WHEN OLD.fencing_state = 'FENCED'
BEGIN
    SELECT RAISE(ABORT, 'hosts_fenced_stay');
END;

CREATE TABLE events (
    -- One writer at a time: the order of the inserts is the order of the commits, so that a reader who has seen N has seen everything
    -- before it.
    sequence integer PRIMARY KEY AUTOINCREMENT,
    id text NOT NULL UNIQUE,
    -- None where something of Ringfence's own has changed, such as a subscription.
    host_id text,
    host text,
    segment_id text,
    host_sequence integer CHECK (host_sequence >= 1),
    kind text NOT NULL,
    -- What is counted of it, if anything is.
    problem text CHECK (problem IN ('failed', 'fenced', 'returned', 'condition')),
    generation integer,
    occurred_at integer NOT NULL,
    data text NOT NULL,
    UNIQUE (host_id, host_sequence),
    CHECK ((host_id IS NULL) = (kind LIKE 'subscription.%')),
    CHECK ((host_id IS NULL) = (host IS NULL) AND (host_id IS NULL) = (segment_id IS NULL)
        AND (host_id IS NULL) = (host_sequence IS NULL) AND (host_id IS NULL) = (generation IS NULL))
) STRICT;

-- How a segment's hosts have changed.
CREATE INDEX changes_by_segment ON events (segment_id, occurred_at) WHERE kind = 'host.failure_state';
-- What has happened to a host, and which hosts it has happened to.
CREATE INDEX problems_by_host ON events (host_id, occurred_at) WHERE problem IS NOT NULL;
CREATE INDEX problems_by_time ON events (occurred_at, segment_id, host_id, problem) WHERE problem IS NOT NULL;

CREATE TRIGGER events_have_no_gap BEFORE INSERT ON events
    WHEN NEW.host_sequence > 1
        AND NOT EXISTS (SELECT 1 FROM events WHERE host_id = NEW.host_id AND host_sequence = NEW.host_sequence - 1)
BEGIN
    SELECT RAISE(ABORT, 'events_have_no_gap');
END;

CREATE TABLE outbox (
    id text PRIMARY KEY,
    resource text NOT NULL,
    zone text NOT NULL,
    payload text NOT NULL,
    trace text,
    -- The process that wrote the row publishes it at once; from this moment on any process may.
    available_at integer NOT NULL,
    -- The first such moment: an older row is one that no process could publish.
    waits_since integer NOT NULL,
    -- Later than this no worker would be allowed to act on it.
    expires_at integer NOT NULL,
    tries integer NOT NULL
) STRICT;

CREATE INDEX outbox_by_available_at ON outbox (available_at);

CREATE TABLE device_leases (
    device text PRIMARY KEY,
    operation_id text NOT NULL,
    attempt integer NOT NULL,
    until integer NOT NULL
) STRICT;

CREATE INDEX device_leases_by_attempt ON device_leases (operation_id, attempt);

-- What fences that were not asked for hold while they are under way. Of each name there are so many: the numbers from 1 on.
CREATE TABLE permits (
    name text NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    operation_id text NOT NULL REFERENCES operations (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    -- Whether it stays when its operation is over.
    is_kept integer NOT NULL,
    PRIMARY KEY (name, number)
) STRICT;

CREATE INDEX permits_by_operation ON permits (operation_id);

-- Requests that their callers may repeat: what was asked, what was changed for it, and what was answered.
CREATE TABLE idempotency_keys (
    caller text NOT NULL,
    key text NOT NULL,
    -- Of method, path and body: a key that comes again with another request is a mistake.
    digest text NOT NULL,
    -- The try that carries the request out. It commits a change only while the key is its own.
    holder text NOT NULL,
    -- Later than this another try may take the key over, unless there is a receipt.
    held_until integer NOT NULL,
    -- Written in the transaction of the change.
    receipt text,
    answer text,
    created_at integer NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT;

CREATE INDEX idempotency_keys_by_created_at ON idempotency_keys (created_at);

-- The engines, and when each last said that it runs.
CREATE TABLE engines (
    -- Tells it from all others, also from an earlier one with an equal name.
    id text PRIMARY KEY,
    name text NOT NULL,
    version text NOT NULL,
    seen_at integer NOT NULL
) STRICT;

-- Browsers that are signed in.
CREATE TABLE sessions (
    id text PRIMARY KEY,
    -- SHA-256 of what the browser's cookie holds, in hexadecimal.
    digest text NOT NULL UNIQUE,
    -- The token that was signed in with, encrypted with a key that the cookie alone holds.
    sealed text NOT NULL,
    actor text NOT NULL,
    address text,
    signed_in_at integer NOT NULL,
    expires_at integer NOT NULL
) STRICT;

CREATE INDEX sessions_by_actor ON sessions (actor, signed_in_at);
CREATE INDEX sessions_by_expires_at ON sessions (expires_at);

CREATE TABLE audit (
    position integer PRIMARY KEY AUTOINCREMENT,
    at integer NOT NULL,
    actor text NOT NULL,
    origin text,
    request_id text,
    action text NOT NULL,
    target text,
    host_id text,
    detail text NOT NULL
) STRICT;

CREATE INDEX audit_by_at ON audit (at, position);
CREATE INDEX audit_by_host ON audit (host_id, at, position) WHERE host_id IS NOT NULL;
CREATE INDEX audit_by_actor ON audit (actor, at, position);
CREATE INDEX audit_by_action ON audit (action, at, position);
CREATE INDEX audit_by_request ON audit (request_id, at, position) WHERE request_id IS NOT NULL;

-- The one way to remove entries, for retention. In one transaction it puts a bound here, deletes entries that are older than
-- the bound, and takes the bound away again. A bound cannot be committed: what it refers to never exists.
CREATE TABLE audit_retention (
    older_than integer NOT NULL,
    never integer NOT NULL DEFAULT -1 CHECK (never = -1)
        CONSTRAINT audit_retention_ends_with_its_transaction REFERENCES audit (position) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE TRIGGER audit_stays_as_written BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit_stays');
END;

CREATE TRIGGER audit_stays BEFORE DELETE ON audit
    WHEN NOT EXISTS (SELECT 1 FROM audit_retention WHERE OLD.at < older_than)
BEGIN
    SELECT RAISE(ABORT, 'audit_stays');
END;

-- REPLACE deletes without asking the trigger above.
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE position = NEW.position)
BEGIN
    SELECT RAISE(ABORT, 'audit_stays');
END;

-- Who is told of events, how far they have got, and what became of each delivery.

CREATE TABLE subscriptions (
    id text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    description text NOT NULL,
    url text NOT NULL,
    format text NOT NULL CHECK (format IN ('cloudevents', 'slack', 'mattermost', 'teams')),
    filter text NOT NULL,
    enabled integer NOT NULL,
    disabled_reason text,
    -- What the secrets are derived from. The secrets themselves are kept nowhere.
    secret_versions text NOT NULL,
    revision integer NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    -- Every event with a number up to this one was delivered, or does not pass the filter.
    after_sequence integer NOT NULL CHECK (after_sequence >= 0),
    -- The engine that delivers, as long as it says so again in time.
    held_by text,
    held_until integer,
    CHECK ((held_by IS NULL) = (held_until IS NULL)),
    CHECK (disabled_reason IS NULL OR NOT enabled)
) STRICT;

CREATE TABLE deliveries (
    id text PRIMARY KEY,
    subscription_id text NOT NULL REFERENCES subscriptions (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('event', 'redelivery', 'test')),
    -- Of the event; a test has none.
    sequence integer,
    message_id text NOT NULL,
    event_type text NOT NULL,
    host text,
    status text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    tries integer NOT NULL,
    created_at integer NOT NULL,
    tried_at integer,
    -- When it is tried next.
    next_at integer,
    -- The HTTP status of the last answer.
    answer integer,
    detail text,
    took_ms integer,
    CHECK ((sequence IS NULL) = (kind = 'test')),
    CHECK ((next_at IS NOT NULL) = (status = 'pending'))
) STRICT;

CREATE UNIQUE INDEX deliveries_once_per_event ON deliveries (subscription_id, sequence) WHERE kind = 'event';
CREATE INDEX deliveries_by_subscription ON deliveries (subscription_id, created_at, id);
CREATE INDEX deliveries_asked_for ON deliveries (next_at) WHERE status = 'pending' AND kind <> 'event';
CREATE INDEX deliveries_by_created_at ON deliveries (created_at) WHERE status <> 'pending';

-- Brokers that every event is told to: how far each has got.

CREATE TABLE event_sinks (
    name text PRIMARY KEY,
    -- Every event with a number up to this one was told.
    after_sequence integer NOT NULL CHECK (after_sequence >= 0),
    -- The engine that sends the events, as long as it renews this in time; for a new event sink empty, with the time when it was added.
    held_by text NOT NULL,
    held_until integer NOT NULL
) STRICT;

-- What each method's device last answered when it was asked for its state.

CREATE TABLE method_checks (
    id text PRIMARY KEY,
    method_id text NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    -- None where the question is one for every host.
    host_id text REFERENCES hosts (id) ON DELETE CASCADE,
    -- What is asked, in short: when the method or the host's values change, the row is made anew.
    question text NOT NULL,
    -- As in device_leases.
    device text,
    next_at integer NOT NULL,
    checked_at integer,
    outcome text CHECK (outcome IN ('confirmed', 'refused', 'unknown', 'worker_missing')),
    -- The observed state.
    state text,
    detail text,
    worker text,
    took_ms integer,
    failing_since integer,
    -- Answers in a row that no worker gave.
    missed integer NOT NULL,
    CHECK ((checked_at IS NULL) = (outcome IS NULL)),
    CHECK ((failing_since IS NULL) = (outcome IS NULL OR outcome = 'confirmed'))
) STRICT;

CREATE UNIQUE INDEX method_checks_once_per_host ON method_checks (method_id, host_id) WHERE host_id IS NOT NULL;
CREATE UNIQUE INDEX method_checks_once_for_all ON method_checks (method_id) WHERE host_id IS NULL;
CREATE INDEX method_checks_by_next_at ON method_checks (next_at);
CREATE INDEX method_checks_by_host ON method_checks (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX method_checks_failing ON method_checks (method_id) WHERE failing_since IS NOT NULL;

-- Who does what only one engine at a time should.
CREATE TABLE leases (
    name text PRIMARY KEY,
    held_by text NOT NULL,
    held_until integer NOT NULL
) STRICT;

-- One row. Events with a number up to this one may be missing; those above are all there.
CREATE TABLE events_removed (
    one integer PRIMARY KEY CHECK (one = 1),
    up_to integer NOT NULL CHECK (up_to >= 0)
) STRICT;

INSERT INTO events_removed (one, up_to) VALUES (1, 0);

-- Methods that are filled in for one host as a method is for another: what they prove of one would be taken for a proof of the other.
-- Found while the questions to devices are brought up to date; looked at again before it counts.

CREATE TABLE shared_devices (
    id text PRIMARY KEY,
    host_id text NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    method_id text NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    with_host_id text NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    with_method_id text NOT NULL REFERENCES methods (id) ON DELETE CASCADE,
    UNIQUE (host_id, method_id),
    CHECK (host_id <> with_host_id)
) STRICT;

CREATE INDEX shared_devices_by_method ON shared_devices (method_id);
CREATE INDEX shared_devices_by_with_host ON shared_devices (with_host_id);
CREATE INDEX shared_devices_by_with_method ON shared_devices (with_method_id);

CREATE TRIGGER shared_devices_added_are_counted AFTER INSERT ON shared_devices
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

CREATE TRIGGER shared_devices_removed_are_counted AFTER DELETE ON shared_devices
BEGIN
    UPDATE configuration SET revision = revision + 1;
END;

-- The values that hosts give for the parameters of methods, kept by triggers, so that hosts with equal values are found.

CREATE TABLE host_parameters (
    host_id text NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    -- The method's name: a host may name one that is not there yet.
    method text NOT NULL,
    given text NOT NULL,
    PRIMARY KEY (host_id, method)
) STRICT, WITHOUT ROWID;

CREATE INDEX host_parameters_by_given ON host_parameters (method, given);

CREATE TRIGGER host_parameters_are_kept AFTER INSERT ON hosts
BEGIN
    INSERT INTO host_parameters (host_id, method, given) SELECT NEW.id, key, value FROM json_each(NEW.parameters);
END;

CREATE TRIGGER host_parameters_are_changed AFTER UPDATE OF parameters ON hosts WHEN OLD.parameters <> NEW.parameters
BEGIN
    DELETE FROM host_parameters WHERE host_id = NEW.id;
    INSERT INTO host_parameters (host_id, method, given) SELECT NEW.id, key, value FROM json_each(NEW.parameters);
END;
