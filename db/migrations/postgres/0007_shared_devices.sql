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
