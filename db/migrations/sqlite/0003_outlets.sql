-- Brokers that every event is told to: how far each has got.

CREATE TABLE outlets (
    name text PRIMARY KEY,
    -- Every event with a number up to this one was told.
    after_sequence integer NOT NULL CHECK (after_sequence >= 0),
    -- The engine that tells, as long as it says so again in time.
    held_by text,
    held_until integer,
    CHECK ((held_by IS NULL) = (held_until IS NULL))
) STRICT;
