-- Company sign-in: providers with their settings as JSON, the domains that they speak for, the identities that are linked to accounts,
-- and the sign-ins from which sessions came. A login without a session waits for a second factor.
CREATE TABLE company_providers (
    name         text        COLLATE "C" PRIMARY KEY,
    settings     text        NOT NULL,
    secret       bytea       NOT NULL,
    managed_by   text        COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    succeeded_at timestamptz,
    problem      text        NOT NULL DEFAULT '',
    problem_at   timestamptz
);

CREATE TABLE company_domains (
    domain   text COLLATE "C" PRIMARY KEY,
    provider text COLLATE "C" NOT NULL REFERENCES company_providers (name) ON DELETE CASCADE
);

CREATE TABLE company_identities (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    issuer       text        COLLATE "C" NOT NULL,
    subject      text        COLLATE "C" NOT NULL,
    email        text        COLLATE "C" NOT NULL,
    linked_at    timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    UNIQUE (issuer, subject)
);
CREATE INDEX company_identities_by_user ON company_identities (user_id, linked_at, id);

CREATE TABLE company_logins (
    id          uuid        PRIMARY KEY,
    session_id  uuid        UNIQUE REFERENCES sessions (id) ON DELETE CASCADE,
    identity_id uuid        NOT NULL REFERENCES company_identities (id) ON DELETE CASCADE,
    provider    text        COLLATE "C" NOT NULL,
    sid         text        COLLATE "C" NOT NULL,
    refresh     bytea       NOT NULL,
    answered_at timestamptz NOT NULL,
    recheck_at  timestamptz
);
CREATE INDEX company_logins_by_identity ON company_logins (identity_id);
CREATE INDEX company_logins_by_provider ON company_logins (provider);
CREATE INDEX company_logins_due ON company_logins (recheck_at) WHERE recheck_at IS NOT NULL;

ALTER TABLE pending_logins ADD COLUMN company_login text NOT NULL DEFAULT '';
ALTER TABLE pending_logins ADD COLUMN session_until timestamptz;
