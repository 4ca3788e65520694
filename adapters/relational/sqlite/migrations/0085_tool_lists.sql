-- What tool servers show to a model: for each version, part of its document and way of reading at most one list that is approved and
-- one that is not. part is a hash of what the part is; content is canonical JSON; makers is a JSON array.
CREATE TABLE tool_lists (
    name     TEXT NOT NULL,
    version  TEXT NOT NULL,
    part     TEXT NOT NULL,
    source   TEXT NOT NULL,
    approved INTEGER NOT NULL CHECK (approved IN (0, 1)),
    state    TEXT NOT NULL,
    sent_at  INTEGER NOT NULL,
    sender   TEXT NOT NULL,
    policy   TEXT NOT NULL,
    makers   TEXT NOT NULL,
    content  TEXT NOT NULL,
    PRIMARY KEY (name, version, part, source, approved),
    FOREIGN KEY (name, version) REFERENCES versions (name, version) ON DELETE CASCADE
) STRICT;

-- Answers with lists that are kept are not right any more (0036_revision_steps).
CREATE TRIGGER tool_lists_added_are_counted AFTER INSERT ON tool_lists BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER tool_lists_changed_are_counted AFTER UPDATE ON tool_lists BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER tool_lists_removed_are_counted AFTER DELETE ON tool_lists BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
