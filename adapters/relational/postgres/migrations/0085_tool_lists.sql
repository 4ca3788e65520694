-- What tool servers show to a model: for each version, part of its document and way of reading at most one list that is approved and
-- one that is not. part is a hash of what the part is; content is canonical JSON; makers is a JSON array.
CREATE TABLE tool_lists (
    name     text COLLATE "C" NOT NULL,
    version  text COLLATE "C" NOT NULL,
    part     text COLLATE "C" NOT NULL,
    source   text COLLATE "C" NOT NULL,
    approved boolean NOT NULL,
    state    text NOT NULL,
    sent_at  timestamptz NOT NULL,
    sender   text COLLATE "C" NOT NULL,
    policy   text NOT NULL,
    makers   text NOT NULL,
    content  text NOT NULL,
    PRIMARY KEY (name, version, part, source, approved),
    FOREIGN KEY (name, version) REFERENCES versions (name, version) ON DELETE CASCADE
);

-- Answers with lists that are kept are not right any more (0036_revision_steps).
CREATE CONSTRAINT TRIGGER tool_lists_are_counted AFTER INSERT OR UPDATE OR DELETE ON tool_lists
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE PROCEDURE count_quarantine_change();
