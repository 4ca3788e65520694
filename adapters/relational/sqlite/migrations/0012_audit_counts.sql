-- How many audit events a person has of each type on each day (UTC, days since the epoch), so that a page of a long audit log
-- counts only what is not counted here. The counts are complete from the start of first_day up to counted_until; everything
-- outside of that is counted from audit_events.
CREATE TABLE audit_day_counts (
    user_id TEXT    NOT NULL,
    day     INTEGER NOT NULL,
    type    TEXT    NOT NULL,
    events  INTEGER NOT NULL,
    PRIMARY KEY (user_id, day, type)
) WITHOUT ROWID;

CREATE INDEX audit_day_counts_by_day ON audit_day_counts (day);

CREATE TABLE audit_counted (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    first_day     INTEGER NOT NULL,
    counted_until INTEGER NOT NULL
);

INSERT INTO audit_counted (id, first_day, counted_until) VALUES (1, 0, 0);

-- What risk learns from: a person's trusted sessions, newest first.
CREATE INDEX sessions_trusted ON sessions (user_id, created_at, id) WHERE trust_level IN ('LIMITED_TRUST', 'FULL_TRUST');
