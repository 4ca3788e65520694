-- The last state of a file that each owner has applied: its objects as JSON, without secrets.
CREATE TABLE applied_states (
    owner      TEXT NOT NULL PRIMARY KEY,
    apply_id   TEXT NOT NULL,
    applied_by TEXT NOT NULL,
    applied_at INTEGER NOT NULL,
    objects    TEXT NOT NULL
) STRICT;
