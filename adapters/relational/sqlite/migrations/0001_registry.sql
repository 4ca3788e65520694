-- The registry: servers, their versions, the addresses of their remotes, and the grants.
-- Text is compared bytewise. Times are microseconds since 1970-01-01 UTC.

-- One row per server name. It is what the search looks through.
CREATE TABLE servers (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- The trigrams of the names, for searches of three characters and more.
CREATE VIRTUAL TABLE server_parts USING fts5 (name, content = '', tokenize = 'trigram');
CREATE TRIGGER server_parts_follow AFTER INSERT ON servers BEGIN
    INSERT INTO server_parts (rowid, name) VALUES (new.id, new.name);
END;

CREATE TABLE versions (
    name              TEXT NOT NULL REFERENCES servers (name),
    version           TEXT NOT NULL,
    status            TEXT NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
    status_message    TEXT NOT NULL,
    status_changed_at INTEGER NOT NULL,
    published_at      INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    is_latest         INTEGER NOT NULL CHECK (is_latest IN (0, 1)),
    document          BLOB NOT NULL, -- as it was sent
    PRIMARY KEY (name, version),
    UNIQUE (name, published_at)
) STRICT;
CREATE UNIQUE INDEX versions_one_latest ON versions (name) WHERE is_latest;
CREATE INDEX versions_by_version ON versions (version, name);
CREATE INDEX versions_by_update ON versions (updated_at, name, version);

-- Who owns the address of a remote while a version that is not deleted has it.
CREATE TABLE remote_owners (
    url  TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL REFERENCES servers (name),
    UNIQUE (url, name)
) STRICT;
CREATE INDEX remote_owners_by_name ON remote_owners (name);

-- The addresses of every version, deleted ones too. claim is the address while the version counts for the owner.
CREATE TABLE remotes (
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    url     TEXT NOT NULL,
    claim   TEXT CHECK (claim = url),
    PRIMARY KEY (name, version, url),
    FOREIGN KEY (name, version) REFERENCES versions (name, version),
    FOREIGN KEY (claim, name) REFERENCES remote_owners (url, name)
) STRICT;
CREATE INDEX remotes_by_url ON remotes (url, name);
CREATE INDEX remotes_by_claim ON remotes (claim, name) WHERE claim IS NOT NULL;

CREATE TABLE grants (
    holder  TEXT NOT NULL,
    action  TEXT NOT NULL CHECK (action IN ('publish', 'edit')),
    pattern TEXT NOT NULL,
    PRIMARY KEY (holder, action, pattern)
) STRICT, WITHOUT ROWID;
