-- Documents that were submitted for review, and what was decided about them. checks and makers are JSON arrays. An empty text is a
-- value that is not there.
CREATE TABLE reviews (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    version      TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'superseded')),
    kind         TEXT NOT NULL,
    document     BLOB NOT NULL,
    replaced     BLOB,
    checks       TEXT NOT NULL,
    submitter    TEXT NOT NULL,
    policy       TEXT NOT NULL,
    makers       TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    decided_by   TEXT NOT NULL,
    decided_at   INTEGER,
    comment      TEXT NOT NULL,
    rule         TEXT NOT NULL
) STRICT;

-- At most one document of a version waits.
CREATE UNIQUE INDEX reviews_waiting ON reviews (name, version) WHERE state = 'pending';
CREATE INDEX reviews_by_submitter ON reviews (submitter) WHERE state = 'pending';
CREATE INDEX reviews_by_state ON reviews (state, submitted_at, id);

-- A row for each submitter, which is locked while the pending documents of the submitter are counted.
CREATE TABLE review_submitters (submitter TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE review_rules (
    id         TEXT NOT NULL PRIMARY KEY,
    pattern    TEXT NOT NULL,
    publisher  TEXT NOT NULL,
    condition  TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- When each reviewer was last notified of what waits.
CREATE TABLE review_notices (
    reviewer TEXT NOT NULL PRIMARY KEY,
    sent_at  INTEGER NOT NULL
) STRICT;
