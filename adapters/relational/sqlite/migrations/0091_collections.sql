-- Collections of servers that the catalogue shows first, with the fields of their kind as JSON.
CREATE TABLE collections (
    name       TEXT NOT NULL PRIMARY KEY,
    settings   TEXT NOT NULL,
    managed_by TEXT NOT NULL
) STRICT;
