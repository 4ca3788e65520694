-- The counters of 0015_changes grow by a random step instead of by one. If a failover or a restore loses changes, those that follow
-- would otherwise bring the counters to numbers that they had before, and answers that were kept then would count as current
-- (docs/adr/0012-answers-kept-in-memory.md). They still grow with each change; 8 billion changes fit.
CREATE FUNCTION registry_change_step() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT 1 + floor(random() * 2147483648)::bigint
$$;

CREATE OR REPLACE FUNCTION count_registry_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    removed boolean := TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND NEW.status = 'deleted' AND OLD.status <> 'deleted';
    change  text := txid_current() || CASE WHEN removed THEN ' ' || OLD.name ELSE '' END;
    setting text := CASE WHEN removed THEN 'tollgate.removal' ELSE 'tollgate.change' END;
    step    bigint;
BEGIN
    IF current_setting(setting, true) IS DISTINCT FROM change THEN
        PERFORM set_config(setting, change, true);
        step := registry_change_step();
        UPDATE registry_changes SET changes = changes + step, removals = removals + removed::integer * step WHERE shard = pg_backend_pid() % 32;
        PERFORM pg_notify('tollgate_registry', CASE WHEN removed THEN OLD.name ELSE '' END);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_view_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry_changes SET views = views + registry_change_step() WHERE shard = pg_backend_pid() % 32;
    PERFORM pg_notify('tollgate_registry', '');
    RETURN NULL;
END $$;
