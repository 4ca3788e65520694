-- What a reader is told of a version beside its document, in one column: a listing reads hundreds of rows, and the cost of
-- reading one is that of its columns. The database derives it, so that it cannot differ from the columns it is made of.
-- The form is: name, status, latest (0 or 1), the times of the status, the publication and the update in microseconds since
-- 1970-01-01 UTC, the bytes of the version, each with a space behind it; then the version and the status message.
--
-- SQLite adds no stored column to a table that is there, so that the table is made anew, and with it the one that refers
-- to it.
DROP INDEX versions_one_latest;
DROP INDEX versions_by_version;
DROP INDEX versions_by_update;
DROP INDEX remotes_by_url;
DROP INDEX remotes_by_claim;
ALTER TABLE versions RENAME TO former_versions;
ALTER TABLE remotes RENAME TO former_remotes;

CREATE TABLE versions (
    name              TEXT NOT NULL REFERENCES servers (name),
    version           TEXT NOT NULL,
    status            TEXT NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
    status_message    TEXT NOT NULL,
    status_changed_at INTEGER NOT NULL,
    published_at      INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    is_latest         INTEGER NOT NULL CHECK (is_latest IN (0, 1)),
    facts             TEXT NOT NULL GENERATED ALWAYS AS (
        name || ' ' || status || ' ' || is_latest || ' ' || status_changed_at || ' ' || published_at || ' ' || updated_at
        || ' ' || length(CAST(version AS BLOB)) || ' ' || version || status_message
    ) STORED,
    document          BLOB NOT NULL, -- as it was sent
    PRIMARY KEY (name, version),
    UNIQUE (name, published_at)
) STRICT;
INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
    SELECT name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document
    FROM former_versions ORDER BY name, version;
CREATE UNIQUE INDEX versions_one_latest ON versions (name) WHERE is_latest;
CREATE INDEX versions_by_version ON versions (version, name);
CREATE INDEX versions_by_update ON versions (updated_at, name, version);

CREATE TABLE remotes (
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    url     TEXT NOT NULL,
    claim   TEXT CHECK (claim = url),
    PRIMARY KEY (name, version, url),
    FOREIGN KEY (name, version) REFERENCES versions (name, version),
    FOREIGN KEY (claim, name) REFERENCES remote_owners (url, name)
) STRICT;
INSERT INTO remotes (name, version, url, claim) SELECT name, version, url, claim FROM former_remotes;
CREATE INDEX remotes_by_url ON remotes (url, name);
CREATE INDEX remotes_by_claim ON remotes (claim, name) WHERE claim IS NOT NULL;

DROP TABLE former_remotes;
DROP TABLE former_versions;
