-- From which other registry a mirror took a version; NULL if it was published here. The form is: the name of the mirror, when the
-- document was read in microseconds since 1970-01-01 UTC, and the URL, with a space between them.
ALTER TABLE versions ADD COLUMN origin TEXT;

-- Other registries whose servers are taken over. Patterns have a space between them. An instance reads while it has the lease.
CREATE TABLE mirrors (
    name            TEXT NOT NULL PRIMARY KEY,
    url             TEXT NOT NULL,
    include         TEXT NOT NULL,
    exclude         TEXT NOT NULL,
    read_interval   INTEGER NOT NULL, -- seconds
    review          TEXT NOT NULL CHECK (review IN ('pending', 'trusted')),
    lenient         INTEGER NOT NULL CHECK (lenient IN (0, 1)),
    created_at      INTEGER NOT NULL,
    next_at         INTEGER NOT NULL,
    last_success    INTEGER,
    last_full       INTEGER,
    failing_since   INTEGER,
    failures        INTEGER NOT NULL,
    reason          TEXT NOT NULL,
    servers         INTEGER NOT NULL,
    lease_holder    TEXT NOT NULL DEFAULT '',
    lease_until     INTEGER
) STRICT;

-- The states of versions that mirrors have taken, also of documents that are not listed because they wait for review.
CREATE TABLE mirrored_versions (
    mirror       TEXT NOT NULL,
    name         TEXT NOT NULL,
    version      TEXT NOT NULL,
    hash         BLOB NOT NULL,
    status       TEXT NOT NULL,
    message      TEXT NOT NULL,
    published_at INTEGER,
    review       TEXT NOT NULL,
    PRIMARY KEY (mirror, name, version)
) STRICT, WITHOUT ROWID;
