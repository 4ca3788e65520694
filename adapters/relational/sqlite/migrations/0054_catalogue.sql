-- The catalogue: what people see of the latest version of each server, and find it by. Names of servers whose row is not up to date
-- are in catalogue_backlog; triggers put them there, so that no program that writes can forget it, not even one of the version before.
CREATE TABLE catalogue (
    id           INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    title        TEXT NOT NULL, -- in lower case
    words        TEXT NOT NULL, -- name, title and description, a line each, in lower case
    facets       TEXT NOT NULL, -- each with a space on both sides
    summary      TEXT NOT NULL, -- title and description as they were written, a line each
    published_at INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    living       INTEGER NOT NULL, -- not deleted
    spread       INTEGER NOT NULL -- a number that spreads the names; the servers with the least ones are a sample
) STRICT;
CREATE INDEX catalogue_living ON catalogue (name) WHERE living;
CREATE INDEX catalogue_by_publication ON catalogue (published_at DESC, name);
CREATE INDEX catalogue_by_update ON catalogue (updated_at DESC, name);
CREATE INDEX catalogue_by_spread ON catalogue (spread);

-- The parts of words, of one to three characters, those of titles, and the facets, all as hexadecimal digits.
CREATE VIRTUAL TABLE catalogue_parts USING fts5 (parts, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

CREATE TABLE catalogue_backlog (name TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO catalogue_backlog (name) SELECT name FROM versions WHERE is_latest;
-- With OR IGNORE, the conflict clause of the statement that fires a trigger would hold instead.
CREATE TRIGGER versions_added_are_listed AFTER INSERT ON versions WHEN new.is_latest BEGIN
    INSERT INTO catalogue_backlog (name) SELECT new.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = new.name);
END;
CREATE TRIGGER versions_changed_are_listed AFTER UPDATE ON versions WHEN new.is_latest BEGIN
    INSERT INTO catalogue_backlog (name) SELECT new.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = new.name);
END;
