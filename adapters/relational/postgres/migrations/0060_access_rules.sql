-- The rules by which calls of servers are decided, with their fields as JSON.
CREATE TABLE access_rules (
    name       text COLLATE "C" PRIMARY KEY,
    settings   text NOT NULL,
    managed_by text COLLATE "C" NOT NULL
);

-- Counts their changes, once in each transaction, as 0015_changes counts those of versions.
ALTER TABLE registry_changes ADD COLUMN access bigint NOT NULL DEFAULT 0;

CREATE FUNCTION count_access_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tollgate.access', true) IS DISTINCT FROM txid_current()::text THEN
        PERFORM set_config('tollgate.access', txid_current()::text, true);
        UPDATE registry_changes SET access = access + registry_change_step() WHERE shard = pg_backend_pid() % 32;
        PERFORM pg_notify('tollgate_registry', '');
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER access_rules_are_counted AFTER INSERT OR UPDATE OR DELETE ON access_rules
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE PROCEDURE count_access_change();
