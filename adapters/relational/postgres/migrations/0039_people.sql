-- Links by which people make the first account, accept an invitation or set another password. Only the hash is kept.
CREATE TABLE links (
    hash       bytea PRIMARY KEY,
    purpose    text  NOT NULL,
    user_id    uuid  REFERENCES accounts (id),
    created_at timestamptz,
    expires_at timestamptz
);
CREATE INDEX links_by_user ON links (user_id);
CREATE INDEX links_by_expiry ON links (expires_at);

-- A row that a transaction changes before it decides who can operate the service.
CREATE TABLE guards (name text PRIMARY KEY);
INSERT INTO guards (name) VALUES ('operators');
