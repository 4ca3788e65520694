-- Counts the changes of versions, so that a process knows whether answers that it keeps are still right. A trigger counts, so that
-- no program that writes can forget it. One row would make all writers wait for each other's commits, so there are 32, and each
-- connection uses one of them; the sum counts. The trigger runs at the end of the transaction, when it waits for no other lock.
CREATE TABLE registry_changes (
    shard    integer PRIMARY KEY,
    changes  bigint NOT NULL,
    removals bigint NOT NULL -- changes by which a version was deleted
) WITH (fillfactor = 40);
INSERT INTO registry_changes (shard, changes, removals) SELECT i, 0, 0 FROM generate_series(0, 31) AS s (i);

-- One change of many versions is counted once, and once more for each server of which it deletes versions. The notification has
-- the name of that server, or nothing.
CREATE FUNCTION count_registry_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    removed boolean := TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND NEW.status = 'deleted' AND OLD.status <> 'deleted';
    change  text := txid_current() || CASE WHEN removed THEN ' ' || OLD.name ELSE '' END;
    setting text := CASE WHEN removed THEN 'tollgate.removal' ELSE 'tollgate.change' END;
BEGIN
    IF current_setting(setting, true) IS DISTINCT FROM change THEN
        PERFORM set_config(setting, change, true);
        UPDATE registry_changes SET changes = changes + 1, removals = removals + removed::integer WHERE shard = pg_backend_pid() % 32;
        PERFORM pg_notify('tollgate_registry', CASE WHEN removed THEN OLD.name ELSE '' END);
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER versions_are_counted AFTER INSERT OR UPDATE OR DELETE ON versions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE PROCEDURE count_registry_change();
