-- What is in quarantine: a server, with an empty version, or one version. added_by is empty for an operator.
CREATE TABLE quarantine (
    name     TEXT NOT NULL REFERENCES servers (name),
    version  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    since    INTEGER NOT NULL,
    added_by TEXT NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

-- The statuses that versions had before their quarantine.
CREATE TABLE quarantined_versions (
    name              TEXT NOT NULL,
    version           TEXT NOT NULL,
    status            TEXT NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
    status_message    TEXT NOT NULL,
    status_changed_at INTEGER NOT NULL,
    PRIMARY KEY (name, version),
    FOREIGN KEY (name, version) REFERENCES versions (name, version)
) STRICT, WITHOUT ROWID;
