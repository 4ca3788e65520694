-- How often a person has shown a value of a feature at sign-ins (core/auth/history). Addresses and their prefixes are keyed hashes.
-- The period is the number of ten days since 1970 that contains last_at; only it has an index, so that most additions change no index.
CREATE TABLE history_counts (
    sum     double precision NOT NULL,
    last_at timestamptz      NOT NULL,
    user_id uuid             NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    version integer          NOT NULL,
    period  smallint         NOT NULL,
    feature smallint         NOT NULL,
    value   text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, feature, value)
);

CREATE INDEX history_counts_by_period ON history_counts (period);

-- The same of everybody.
CREATE TABLE history_totals (
    sum     double precision NOT NULL,
    last_at timestamptz      NOT NULL,
    version integer          NOT NULL,
    period  smallint         NOT NULL,
    feature smallint         NOT NULL,
    value   text COLLATE "C" NOT NULL,
    PRIMARY KEY (feature, value)
);

CREATE INDEX history_totals_by_period ON history_totals (period);

-- What sign-ins have added to the counts of everybody and is not gathered in history_totals yet, so that sign-ins do not wait for
-- each other. The form of additions is in package authrecords.
CREATE TABLE history_additions (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL,
    additions text COLLATE "C" NOT NULL
);

-- What is added when a session passes a step-up. The rows of a session are deleted with its refresh tokens.
CREATE TABLE history_deferred (
    session_id uuid        NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    at         timestamptz NOT NULL,
    additions  text COLLATE "C" NOT NULL
);
