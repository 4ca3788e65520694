-- The clients of the authorization server that operators have registered, with their fields and the hash of their secret as JSON.
CREATE TABLE oauth_clients (
    name       TEXT NOT NULL PRIMARY KEY,
    settings   TEXT NOT NULL,
    managed_by TEXT NOT NULL
) STRICT;

-- The resources of the authorization server, with their fields as JSON.
CREATE TABLE oauth_resources (
    name       TEXT NOT NULL PRIMARY KEY,
    settings   TEXT NOT NULL,
    managed_by TEXT NOT NULL
) STRICT;
