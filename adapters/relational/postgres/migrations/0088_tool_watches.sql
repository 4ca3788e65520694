-- Remotes that are asked for their tools: when the next question is due, what became of the last ones, and who asks now. seen are the
-- marks of the last two lists, the last one first, and received is that of the last one with the versions that got it.
CREATE TABLE tool_watches (
    name         text COLLATE "C" NOT NULL,
    url          text COLLATE "C" NOT NULL,
    next_at      timestamptz NOT NULL,
    failures     integer NOT NULL DEFAULT 0,
    since        timestamptz,
    problem      text NOT NULL DEFAULT '',
    seen         text NOT NULL DEFAULT '',
    unstable     boolean NOT NULL DEFAULT false,
    received     text NOT NULL DEFAULT '',
    notified_at  timestamptz,
    lease_holder text COLLATE "C" NOT NULL DEFAULT '',
    lease_until  timestamptz,
    PRIMARY KEY (name, url)
);
CREATE INDEX tool_watches_by_time ON tool_watches (next_at);
CREATE INDEX tool_watches_by_lease ON tool_watches (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX tool_lists_that_wait ON tool_lists (name, version) WHERE NOT approved;

-- Answers with lists that are kept are not right any more (0036_revision_steps).
CREATE CONSTRAINT TRIGGER tool_problems_are_counted AFTER UPDATE ON tool_watches
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.problem <> new.problem) EXECUTE PROCEDURE count_quarantine_change();
