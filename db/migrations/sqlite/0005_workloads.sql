-- In which of the configured clouds or clusters a host's workloads live, by what name the host is known there, and for which fence
-- somebody has begun to start them elsewhere.

ALTER TABLE hosts ADD COLUMN cloud text;
ALTER TABLE hosts ADD COLUMN known_as text;
ALTER TABLE hosts ADD COLUMN evacuation_begun integer CHECK (evacuation_begun <= generation);

-- Observers look a host up by what its backend calls it, which is its own name unless it says otherwise.
CREATE UNIQUE INDEX hosts_by_cloud ON hosts (cloud, coalesce(known_as, name)) WHERE cloud IS NOT NULL;

-- An evacuation is of the generation of its fence; a fence and a rejoin take one of their own. A constraint cannot be taken off a table
-- here: it is made anew. Its proofs go with it, and come back.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE operations_kept AS SELECT * FROM operations;
CREATE TABLE proofs_kept AS SELECT * FROM proofs;
DROP TABLE operations;

CREATE TABLE operations (
    id text PRIMARY KEY,
    host_id text NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('fence', 'rejoin', 'evacuation')),
    status text NOT NULL CHECK (status IN ('running', 'needs_operator', 'succeeded', 'cancelled')),
    generation integer NOT NULL,
    -- The operation as the rules see it: stages, tasks, attempts, proofs. It is written at every step; what hardly ever changes is kept
    -- apart in `methods`.
    body text NOT NULL CHECK (body <> ''),
    methods text NOT NULL CHECK (methods <> ''),
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    finished_at integer,
    -- What a proof refers to.
    UNIQUE (id, host_id, generation),
    CHECK ((finished_at IS NULL) = (status IN ('running', 'needs_operator')))
) STRICT;

INSERT INTO operations (id, host_id, kind, status, generation, body, methods, created_at, updated_at, finished_at)
    SELECT id, host_id, kind, status, generation, body, methods, created_at, updated_at, finished_at FROM operations_kept;
-- Those that the removal has not taken along stay as they are.
INSERT OR IGNORE INTO proofs SELECT * FROM proofs_kept;
DROP TABLE operations_kept;
DROP TABLE proofs_kept;

CREATE UNIQUE INDEX operations_one_live_per_host ON operations (host_id)
    WHERE finished_at IS NULL;
CREATE INDEX operations_by_created_at ON operations (created_at, id);
CREATE INDEX operations_by_updated_at ON operations (updated_at, id);
CREATE INDEX operations_live_by_created_at ON operations (created_at, id)
    WHERE status IN ('running', 'needs_operator');
CREATE UNIQUE INDEX operations_once_per_generation ON operations (host_id, generation) WHERE kind <> 'evacuation';
CREATE INDEX operations_by_host ON operations (host_id, generation);
