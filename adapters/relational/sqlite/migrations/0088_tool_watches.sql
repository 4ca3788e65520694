-- Remotes that are asked for their tools: when the next question is due, what became of the last ones, and who asks now. seen are the
-- marks of the last two lists, the last one first, and received is that of the last one with the versions that got it.
CREATE TABLE tool_watches (
    name         TEXT NOT NULL,
    url          TEXT NOT NULL,
    next_at      INTEGER NOT NULL,
    failures     INTEGER NOT NULL DEFAULT 0,
    since        INTEGER,
    problem      TEXT NOT NULL DEFAULT '',
    seen         TEXT NOT NULL DEFAULT '',
    unstable     INTEGER NOT NULL DEFAULT 0 CHECK (unstable IN (0, 1)),
    received     TEXT NOT NULL DEFAULT '',
    notified_at  INTEGER,
    lease_holder TEXT NOT NULL DEFAULT '',
    lease_until  INTEGER,
    PRIMARY KEY (name, url)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_watches_by_time ON tool_watches (next_at);
CREATE INDEX tool_watches_by_lease ON tool_watches (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX tool_lists_that_wait ON tool_lists (name, version) WHERE NOT approved;

-- Answers with lists that are kept are not right any more (0036_revision_steps).
CREATE TRIGGER tool_problems_are_counted AFTER UPDATE OF problem ON tool_watches WHEN old.problem <> new.problem BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
