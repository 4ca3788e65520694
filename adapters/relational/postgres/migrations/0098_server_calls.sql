-- How many calls of servers were decided on the days since 1970, all instances together. Rows go after eight days.
CREATE TABLE server_calls (
    day    bigint NOT NULL,
    name   text COLLATE "C" NOT NULL,
    calls  bigint NOT NULL,
    denied bigint NOT NULL,
    PRIMARY KEY (day, name)
);
-- When the remote was asked last.
ALTER TABLE tool_watches ADD COLUMN asked_at timestamptz;
