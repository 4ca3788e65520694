-- The window of failed sign-ins slides: the time of each that counts is kept, as a JSON array of microseconds since the
-- epoch. Of failures from before only the first one's time is known, so all of them leave the window with it, as they would
-- have. latest is the later of the last failure and the end of the lock, the epoch where there is neither: retention looks for it.
ALTER TABLE lockouts ADD COLUMN failed_at text NOT NULL DEFAULT '[]';
ALTER TABLE lockouts ADD COLUMN latest integer NOT NULL DEFAULT 0;

UPDATE lockouts SET failed_at = '[' || rtrim(replace(hex(zeroblob(min(failures, 100))), '00', first_at || ','), ',') || ']'
    WHERE failures > 0 AND first_at IS NOT NULL;
UPDATE lockouts SET latest = max(coalesce(first_at, 0), coalesce(locked_until, 0));

DROP INDEX lockouts_by_start;
ALTER TABLE lockouts DROP COLUMN failures;
ALTER TABLE lockouts DROP COLUMN first_at;
CREATE INDEX lockouts_by_latest ON lockouts (latest, key);
