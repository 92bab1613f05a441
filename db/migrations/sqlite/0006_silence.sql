-- Whether something has begun for a host since it fell silent: it is not fenced without being asked then.

ALTER TABLE hosts ADD COLUMN is_silence_answered integer NOT NULL DEFAULT 0 CHECK (is_silence_answered IN (0, 1));
