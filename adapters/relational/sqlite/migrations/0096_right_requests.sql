-- Requests of people for rights. A person has at most five that are open, one in each slot, and one for each right.
CREATE TABLE right_requests (
    id         TEXT    NOT NULL PRIMARY KEY,
    user_id    TEXT    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    slot       INTEGER NOT NULL CHECK (slot BETWEEN 1 AND 5),
    action     TEXT    NOT NULL CHECK (action IN ('publish', 'edit', 'review')),
    pattern    TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    asked_at   INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('open', 'granted', 'declined')),
    given      TEXT    NOT NULL DEFAULT '',
    decided_by TEXT    NOT NULL DEFAULT '',
    comment    TEXT    NOT NULL DEFAULT '',
    decided_at INTEGER,
    CHECK (decided_by <> user_id)
) STRICT;
CREATE UNIQUE INDEX right_requests_slots ON right_requests (user_id, slot) WHERE state = 'open';
CREATE UNIQUE INDEX right_requests_once ON right_requests (user_id, action, pattern) WHERE state = 'open';
CREATE INDEX right_requests_open ON right_requests (asked_at, id) WHERE state = 'open';
CREATE INDEX right_requests_people ON right_requests (user_id, asked_at);
