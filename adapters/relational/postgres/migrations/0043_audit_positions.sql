-- The place of an event in the stream of the audit log, so that a reader who continues after an event misses nothing. Events from
-- before this migration keep the position NULL, and are first, in the order of time and id: there may be millions, which an UPDATE
-- would store again. Old instances select all columns of this table, and skip unknown ones whose names begin with an underscore.
CREATE SEQUENCE audit_positions CACHE 1;

-- Positions are drawn before the commit, so a transaction may commit a smaller one than a reader has seen. The reader therefore needs
-- a bound: the greatest position up to which no open transaction can have one. A transaction holds, from before its first position
-- until after its commit, a shared advisory lock whose key is 'au' (24949) in the upper 16 bits, and in the others the last position
-- at that time, so less than each of its own. audit_bound reads the last position, and then the locks. An event up to the result was
-- drawn before the first of both, under a lock. If its transaction was open when the locks were read, its lock made the result less
-- than its position. So it has ended, which makes it visible before it releases its lock: a statement that begins later sees it.
-- A position that is drawn later is greater than the last one then, and so than the result.
CREATE FUNCTION next_audit_position() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tollgate.audit', true) IS DISTINCT FROM 'locked' THEN -- the setting ends with the lock, also at a savepoint
        PERFORM pg_advisory_xact_lock_shared((24949::bigint << 48) + coalesce(pg_sequence_last_value('audit_positions'), 0));
        PERFORM set_config('tollgate.audit', 'locked', true);
    END IF;
    RETURN nextval('audit_positions');
END $$;

CREATE FUNCTION audit_bound() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last bigint := coalesce(pg_sequence_last_value('audit_positions'), 0);
BEGIN
    IF pg_is_in_recovery() THEN -- a standby does not have the locks of its primary
        RAISE EXCEPTION 'the stream of the audit log needs the primary server' USING ERRCODE = 'read_only_sql_transaction';
    END IF;
    RETURN (SELECT least(last, min(((classid::bigint & 65535) << 32) | objid::bigint)) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 16 = 24949
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));
END $$;

ALTER TABLE audit_events ADD COLUMN _position bigint;
ALTER TABLE audit_events ALTER COLUMN _position SET DEFAULT next_audit_position();
CREATE INDEX audit_events_by_position ON audit_events (_position) WHERE _position IS NOT NULL;

-- The newest event without a position; one row.
CREATE TABLE audit_unnumbered AS SELECT max(time) AS until FROM audit_events;
