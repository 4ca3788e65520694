-- What is in quarantine: a server, with an empty version, or one version. added_by is empty for an operator.
CREATE TABLE quarantine (
    name     text COLLATE "C" NOT NULL REFERENCES servers (name),
    version  text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    since    timestamptz NOT NULL,
    added_by text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, version)
);

-- The statuses that versions had before their quarantine.
CREATE TABLE quarantined_versions (
    name              text COLLATE "C" NOT NULL,
    version           text COLLATE "C" NOT NULL,
    status            text NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
    status_message    text COLLATE "C" NOT NULL,
    status_changed_at timestamptz NOT NULL,
    PRIMARY KEY (name, version),
    FOREIGN KEY (name, version) REFERENCES versions (name, version)
);
