-- In which of the configured clouds or clusters a host's workloads live, by what name the host is known there, and for which fence
-- somebody has begun to start them elsewhere.

ALTER TABLE hosts
    ADD COLUMN cloud text,
    ADD COLUMN known_as text,
    ADD COLUMN evacuation_begun bigint CHECK (evacuation_begun <= generation);

-- Observers look a host up by what its backend calls it, which is its own name unless it says otherwise.
CREATE UNIQUE INDEX hosts_by_cloud ON hosts (cloud, (coalesce(known_as, name))) WHERE cloud IS NOT NULL;

-- An evacuation is of the generation of its fence; a fence and a rejoin take one of their own.
ALTER TABLE operations DROP CONSTRAINT operations_host_id_generation_key;
CREATE UNIQUE INDEX operations_once_per_generation ON operations (host_id, generation) WHERE kind <> 'evacuation';
CREATE INDEX operations_by_host ON operations (host_id, generation);
