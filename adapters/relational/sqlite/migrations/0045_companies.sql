-- Company sign-in: providers with their settings as JSON, the domains that they speak for, the identities that are linked to accounts,
-- and the sign-ins from which sessions came. A login without a session waits for a second factor.
CREATE TABLE company_providers (
    name         text    NOT NULL PRIMARY KEY,
    settings     text    NOT NULL,
    secret       blob    NOT NULL,
    managed_by   text    NOT NULL,
    created_at   integer NOT NULL,
    succeeded_at integer,
    problem      text    NOT NULL DEFAULT '',
    problem_at   integer
);

CREATE TABLE company_domains (
    domain   text NOT NULL PRIMARY KEY,
    provider text NOT NULL REFERENCES company_providers (name) ON DELETE CASCADE
);

CREATE TABLE company_identities (
    id           text    NOT NULL PRIMARY KEY,
    user_id      text    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    issuer       text    NOT NULL,
    subject      text    NOT NULL,
    email        text    NOT NULL,
    linked_at    integer NOT NULL,
    last_used_at integer NOT NULL,
    UNIQUE (issuer, subject)
);
CREATE INDEX company_identities_by_user ON company_identities (user_id, linked_at, id);

CREATE TABLE company_logins (
    id          text    NOT NULL PRIMARY KEY,
    session_id  text    UNIQUE REFERENCES sessions (id) ON DELETE CASCADE,
    identity_id text    NOT NULL REFERENCES company_identities (id) ON DELETE CASCADE,
    provider    text    NOT NULL,
    sid         text    NOT NULL,
    refresh     blob    NOT NULL,
    answered_at integer NOT NULL,
    recheck_at  integer
);
CREATE INDEX company_logins_by_identity ON company_logins (identity_id);
CREATE INDEX company_logins_by_provider ON company_logins (provider);
CREATE INDEX company_logins_due ON company_logins (recheck_at) WHERE recheck_at IS NOT NULL;

ALTER TABLE pending_logins ADD COLUMN company_login text NOT NULL DEFAULT '';
ALTER TABLE pending_logins ADD COLUMN session_until integer;
