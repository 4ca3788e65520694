-- A reviewer may request changes. SQLite cannot change a constraint, so the table is made again; the lists that wait with reviews are
-- kept meanwhile, because they end with their reviews.
CREATE TABLE kept_tool_lists AS SELECT review, part, source, sent_at, sender, policy, makers, content FROM review_tool_lists;
CREATE TABLE changed_reviews (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    version      TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'changes_requested', 'superseded')),
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
    rule         TEXT NOT NULL,
    reason       TEXT NOT NULL DEFAULT '',
    source       TEXT NOT NULL DEFAULT '',
    part         TEXT NOT NULL DEFAULT '',
    list_source  TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO changed_reviews (id, name, version, state, kind, document, replaced, checks, submitter, policy, makers, submitted_at,
        decided_by, decided_at, comment, rule, reason, source, part, list_source)
    SELECT id, name, version, state, kind, document, replaced, checks, submitter, policy, makers, submitted_at,
        decided_by, decided_at, comment, rule, reason, source, part, list_source FROM reviews;
DROP TABLE reviews;
ALTER TABLE changed_reviews RENAME TO reviews;
CREATE UNIQUE INDEX reviews_waiting ON reviews (name, version, part, list_source) WHERE state = 'pending';
CREATE INDEX reviews_by_submitter ON reviews (submitter) WHERE state = 'pending';
CREATE INDEX reviews_by_state ON reviews (state, submitted_at, id);
CREATE INDEX reviews_by_operator ON reviews (decided_at, id) WHERE decided_by = 'operator';
CREATE INDEX reviews_of_submitter ON reviews (submitter, submitted_at, id);
CREATE INDEX reviews_of_makers ON reviews (submitted_at, id) WHERE makers <> 'null';
INSERT INTO review_tool_lists (review, part, source, sent_at, sender, policy, makers, content)
    SELECT review, part, source, sent_at, sender, policy, makers, content FROM kept_tool_lists WHERE true ON CONFLICT DO NOTHING;
DROP TABLE kept_tool_lists;
