-- The headers with which remotes are asked for their tools, sealed, with the other fields of their kind as JSON.
CREATE TABLE tool_sources (
    name       TEXT NOT NULL PRIMARY KEY,
    settings   TEXT NOT NULL,
    managed_by TEXT NOT NULL
) STRICT;
