-- The window of failed sign-ins slides: the time of each that counts is kept, as a JSON array of microseconds since the
-- epoch. Of failures from before only the first one's time is known, so all of them leave the window with it, as they would
-- have. latest is the later of the last failure and the end of the lock, the epoch where there is neither: retention looks for it.
ALTER TABLE lockouts
    ADD COLUMN failed_at text        NOT NULL DEFAULT '[]',
    ADD COLUMN latest    timestamptz NOT NULL DEFAULT '1970-01-01T00:00:00Z';

UPDATE lockouts SET failed_at = '[' || array_to_string(
        array_fill((extract(epoch FROM first_at) * 1000000)::bigint, ARRAY[least(failures, 100)]), ',') || ']'
    WHERE failures > 0 AND first_at IS NOT NULL;
UPDATE lockouts SET latest = greatest(first_at, locked_until) WHERE first_at IS NOT NULL OR locked_until IS NOT NULL;

DROP INDEX lockouts_by_start;
ALTER TABLE lockouts
    DROP COLUMN failures,
    DROP COLUMN first_at,
    ALTER COLUMN failed_at DROP DEFAULT,
    ALTER COLUMN latest DROP DEFAULT;
CREATE INDEX lockouts_by_latest ON lockouts (latest, key);
