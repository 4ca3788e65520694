-- How many audit events a person has of each type on each day (UTC, days since the epoch), so that a page of a long audit log
-- counts only what is not counted here. The counts are complete from the start of first_day up to counted_until; everything
-- outside of that is counted from audit_events.
CREATE TABLE audit_day_counts (
    user_id uuid    NOT NULL,
    day     integer NOT NULL,
    type    text    COLLATE "C" NOT NULL,
    events  bigint  NOT NULL,
    PRIMARY KEY (user_id, day, type)
);

CREATE INDEX audit_day_counts_by_day ON audit_day_counts (day);

CREATE TABLE audit_counted (
    id            integer     PRIMARY KEY CHECK (id = 1),
    first_day     integer     NOT NULL,
    counted_until timestamptz NOT NULL
);

INSERT INTO audit_counted (id, first_day, counted_until) VALUES (1, 0, '1970-01-01T00:00:00Z');

-- What risk learns from: a person's trusted sessions, newest first.
CREATE INDEX sessions_trusted ON sessions (user_id, created_at, id) WHERE trust_level IN ('LIMITED_TRUST', 'FULL_TRUST');
