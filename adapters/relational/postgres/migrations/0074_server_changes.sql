-- Which servers have changed, and in which transaction last, so that an instance reads again what it keeps of servers at the cost of
-- those that have changed. A reader keeps the snapshot of its last read: what that did not see has changed since. Triggers note it,
-- so that no program that writes can forget it. All that touches a server has locked its row, so no writer waits for another here.
CREATE TABLE server_changes (
    name       text COLLATE "C" PRIMARY KEY,
    changed_in bigint NOT NULL
);
CREATE INDEX server_changes_by_transaction ON server_changes (changed_in);

CREATE FUNCTION note_server_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO server_changes (name, changed_in) VALUES (CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END, txid_current())
        ON CONFLICT (name) DO UPDATE SET changed_in = excluded.changed_in WHERE server_changes.changed_in <> excluded.changed_in;
    RETURN NULL;
END $$;

CREATE TRIGGER versions_are_noted AFTER INSERT OR UPDATE OR DELETE ON versions FOR EACH ROW EXECUTE FUNCTION note_server_change();
CREATE TRIGGER quarantine_is_noted AFTER INSERT OR DELETE ON quarantine FOR EACH ROW EXECUTE FUNCTION note_server_change();

-- Entries of servers that are deleted already change no version, so that 0015_changes does not count them.
CREATE FUNCTION count_quarantine_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry_changes SET changes = changes + registry_change_step() WHERE shard = pg_backend_pid() % 32;
    PERFORM pg_notify('tollgate_registry', '');
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER quarantine_is_counted AFTER INSERT OR DELETE ON quarantine
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE PROCEDURE count_quarantine_change();
