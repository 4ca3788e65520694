-- Service accounts, with the workloads whose ID tokens they accept as a JSON array, and the tokens of people and of service accounts:
-- only their hashes. A grant of a service account has the holder "service:" and its name.
CREATE TABLE service_accounts (
    name        text        COLLATE "C" PRIMARY KEY,
    description text        NOT NULL,
    state       text        NOT NULL CHECK (state IN ('active', 'disabled')),
    workloads   text        NOT NULL,
    managed_by  text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL
);

CREATE TABLE api_tokens (
    id             text        COLLATE "C" PRIMARY KEY,
    hash           bytea       NOT NULL UNIQUE,
    user_id        uuid        REFERENCES accounts (id) ON DELETE CASCADE,
    service        text        COLLATE "C" REFERENCES service_accounts (name) ON DELETE CASCADE,
    name           text        NOT NULL,
    prefix         text        NOT NULL,
    scopes         text        NOT NULL, -- with a space between them
    networks       text        NOT NULL, -- likewise
    workload       boolean     NOT NULL,
    created_by     text        NOT NULL,
    created_at     timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    notice_at      timestamptz,
    last_used_at   timestamptz,
    last_used_from text        NOT NULL,
    CONSTRAINT api_tokens_have_one_owner CHECK ((user_id IS NULL) <> (service IS NULL))
);
CREATE INDEX api_tokens_of_people ON api_tokens (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX api_tokens_of_services ON api_tokens (service, id) WHERE service IS NOT NULL;
CREATE INDEX api_tokens_due ON api_tokens (notice_at) WHERE notice_at IS NOT NULL;
CREATE INDEX api_tokens_expired ON api_tokens (expires_at);
