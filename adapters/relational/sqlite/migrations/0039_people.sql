-- Links by which people make the first account, accept an invitation or set another password. Only the hash is kept.
CREATE TABLE links (
    hash       blob NOT NULL PRIMARY KEY,
    purpose    text NOT NULL,
    user_id    text REFERENCES accounts (id),
    created_at integer,
    expires_at integer
);
CREATE INDEX links_by_user ON links (user_id);
CREATE INDEX links_by_expiry ON links (expires_at);

-- A row that a transaction changes before it decides who can operate the service.
CREATE TABLE guards (name text NOT NULL PRIMARY KEY);
INSERT INTO guards (name) VALUES ('operators');
