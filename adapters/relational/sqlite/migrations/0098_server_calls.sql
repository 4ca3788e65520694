-- How many calls of servers were decided on the days since 1970, all instances together. Rows go after eight days.
CREATE TABLE server_calls (
    day    INTEGER NOT NULL,
    name   TEXT NOT NULL,
    calls  INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    PRIMARY KEY (day, name)
) STRICT, WITHOUT ROWID;
-- When the remote was asked last.
ALTER TABLE tool_watches ADD COLUMN asked_at INTEGER;
