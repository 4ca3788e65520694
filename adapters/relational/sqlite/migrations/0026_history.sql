-- How often a person has shown a value of a feature at sign-ins (core/auth/history). Addresses and their prefixes are keyed hashes.
-- The period is the number of ten days since 1970 that contains last_at; only it has an index, so that most additions change no index.
CREATE TABLE history_counts (
    user_id TEXT    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    feature INTEGER NOT NULL,
    value   TEXT    NOT NULL,
    sum     REAL    NOT NULL,
    last_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    period  INTEGER NOT NULL,
    PRIMARY KEY (user_id, feature, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX history_counts_by_period ON history_counts (period);

-- The same of everybody.
CREATE TABLE history_totals (
    feature INTEGER NOT NULL,
    value   TEXT    NOT NULL,
    sum     REAL    NOT NULL,
    last_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    period  INTEGER NOT NULL,
    PRIMARY KEY (feature, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX history_totals_by_period ON history_totals (period);

-- What sign-ins have added to the counts of everybody and is not gathered in history_totals yet. The form of additions is in package
-- authrecords.
CREATE TABLE history_additions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    additions TEXT    NOT NULL
) STRICT;

-- What is added when a session passes a step-up. The rows of a session are deleted with its refresh tokens.
CREATE TABLE history_deferred (
    session_id TEXT    NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    additions  TEXT    NOT NULL
) STRICT;
