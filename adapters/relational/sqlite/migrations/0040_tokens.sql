-- Service accounts, with the workloads whose ID tokens they accept as a JSON array, and the tokens of people and of service accounts:
-- only their hashes. A grant of a service account has the holder "service:" and its name.
CREATE TABLE service_accounts (
    name        TEXT    NOT NULL PRIMARY KEY,
    description TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('active', 'disabled')),
    workloads   TEXT    NOT NULL,
    managed_by  TEXT    NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE api_tokens (
    id             TEXT    NOT NULL PRIMARY KEY,
    hash           BLOB    NOT NULL UNIQUE,
    user_id        TEXT    REFERENCES accounts (id) ON DELETE CASCADE,
    service        TEXT    REFERENCES service_accounts (name) ON DELETE CASCADE,
    name           TEXT    NOT NULL,
    prefix         TEXT    NOT NULL,
    scopes         TEXT    NOT NULL, -- with a space between them
    networks       TEXT    NOT NULL, -- likewise
    workload       INTEGER NOT NULL,
    created_by     TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    notice_at      INTEGER,
    last_used_at   INTEGER,
    last_used_from TEXT    NOT NULL,
    CHECK ((user_id IS NULL) <> (service IS NULL))
) STRICT;
CREATE INDEX api_tokens_of_people ON api_tokens (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX api_tokens_of_services ON api_tokens (service, id) WHERE service IS NOT NULL;
CREATE INDEX api_tokens_due ON api_tokens (notice_at) WHERE notice_at IS NOT NULL;
CREATE INDEX api_tokens_expired ON api_tokens (expires_at);
