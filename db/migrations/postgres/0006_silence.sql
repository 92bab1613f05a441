-- Whether something has begun for a host since it fell silent: it is not fenced without being asked then.

ALTER TABLE hosts ADD COLUMN is_silence_answered boolean NOT NULL DEFAULT false;
