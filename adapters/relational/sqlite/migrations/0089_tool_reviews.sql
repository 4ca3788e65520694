-- Reviews of tool lists: part and list_source say of which list; they are empty for a document.
ALTER TABLE reviews ADD COLUMN part TEXT NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN list_source TEXT NOT NULL DEFAULT '';
DROP INDEX reviews_waiting;
CREATE UNIQUE INDEX reviews_waiting ON reviews (name, version, part, list_source) WHERE state = 'pending';

-- Tool lists that wait with the review of a document. The columns are those of tool_lists.
CREATE TABLE review_tool_lists (
    review  TEXT NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    part    TEXT NOT NULL,
    source  TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    sender  TEXT NOT NULL,
    policy  TEXT NOT NULL,
    makers  TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (review, part, source)
) STRICT;

-- The names of tools in the approved lists of the latest versions, made with the rows of the catalogue. A change of a list puts its
-- server into the backlog of the catalogue.
CREATE TABLE tool_names (
    tool   TEXT NOT NULL,
    server TEXT NOT NULL,
    PRIMARY KEY (tool, server)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_names_of_server ON tool_names (server);
INSERT INTO catalogue_backlog (name) SELECT DISTINCT name FROM tool_lists WHERE true ON CONFLICT DO NOTHING;
CREATE TRIGGER tool_lists_added_are_listed AFTER INSERT ON tool_lists BEGIN
    INSERT INTO catalogue_backlog (name) SELECT new.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = new.name);
END;
CREATE TRIGGER tool_lists_changed_are_listed AFTER UPDATE ON tool_lists BEGIN
    INSERT INTO catalogue_backlog (name) SELECT new.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = new.name);
END;
CREATE TRIGGER tool_lists_removed_are_listed AFTER DELETE ON tool_lists BEGIN
    INSERT INTO catalogue_backlog (name) SELECT old.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = old.name);
END;
