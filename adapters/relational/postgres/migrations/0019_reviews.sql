-- Documents that were submitted for review, and what was decided about them. checks and makers are JSON arrays. An empty text is a
-- value that is not there.
CREATE TABLE reviews (
    id           text COLLATE "C" NOT NULL PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    version      text COLLATE "C" NOT NULL,
    state        text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'superseded')),
    kind         text COLLATE "C" NOT NULL,
    document     bytea NOT NULL,
    replaced     bytea,
    checks       text COLLATE "C" NOT NULL,
    submitter    text COLLATE "C" NOT NULL,
    policy       text COLLATE "C" NOT NULL,
    makers       text COLLATE "C" NOT NULL,
    submitted_at timestamptz NOT NULL,
    decided_by   text COLLATE "C" NOT NULL,
    decided_at   timestamptz,
    comment      text COLLATE "C" NOT NULL,
    rule         text COLLATE "C" NOT NULL
);

-- At most one document of a version waits.
CREATE UNIQUE INDEX reviews_waiting ON reviews (name, version) WHERE state = 'pending';
CREATE INDEX reviews_by_submitter ON reviews (submitter) WHERE state = 'pending';
CREATE INDEX reviews_by_state ON reviews (state, submitted_at, id);

-- A row for each submitter, which is locked while the pending documents of the submitter are counted.
CREATE TABLE review_submitters (submitter text COLLATE "C" NOT NULL PRIMARY KEY);

CREATE TABLE review_rules (
    id         text COLLATE "C" NOT NULL PRIMARY KEY,
    pattern    text COLLATE "C" NOT NULL,
    publisher  text COLLATE "C" NOT NULL,
    condition  text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL
);

-- When each reviewer was last notified of what waits.
CREATE TABLE review_notices (
    reviewer text COLLATE "C" NOT NULL PRIMARY KEY,
    sent_at  timestamptz NOT NULL
);
