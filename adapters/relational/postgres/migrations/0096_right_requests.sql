-- Requests of people for rights. A person has at most five that are open, one in each slot, and one for each right.
CREATE TABLE right_requests (
    id         text        COLLATE "C" NOT NULL PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    slot       integer     NOT NULL CHECK (slot BETWEEN 1 AND 5),
    action     text        NOT NULL CHECK (action IN ('publish', 'edit', 'review')),
    pattern    text        COLLATE "C" NOT NULL,
    reason     text        NOT NULL,
    asked_at   timestamptz NOT NULL,
    state      text        NOT NULL CHECK (state IN ('open', 'granted', 'declined')),
    given      text        NOT NULL DEFAULT '',
    decided_by text        NOT NULL DEFAULT '',
    comment    text        NOT NULL DEFAULT '',
    decided_at timestamptz,
    CHECK (decided_by <> user_id::text)
);
CREATE UNIQUE INDEX right_requests_slots ON right_requests (user_id, slot) WHERE state = 'open';
CREATE UNIQUE INDEX right_requests_once ON right_requests (user_id, action, pattern) WHERE state = 'open';
CREATE INDEX right_requests_open ON right_requests (asked_at, id) WHERE state = 'open';
CREATE INDEX right_requests_people ON right_requests (user_id, asked_at);
