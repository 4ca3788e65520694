-- Accounts, devices, sessions, step-up challenges, the audit log, lockouts and shared keys. Tokens and codes are kept
-- as hashes, authenticator secrets encrypted; an empty text is a value that is not there, a NULL time one that has not
-- come.

CREATE TABLE accounts (
    id            text    NOT NULL PRIMARY KEY,
    email         text    NOT NULL UNIQUE,
    name          text    NOT NULL,
    phone         text    NOT NULL,
    password_hash text    NOT NULL,
    state         text    NOT NULL,
    mfa_secret    blob    NOT NULL,
    mfa_active    boolean NOT NULL,
    mfa_last_step integer NOT NULL,
    created_at    integer,
    updated_at    integer
);

CREATE TABLE devices (
    id              text    NOT NULL PRIMARY KEY,
    user_id         text    NOT NULL REFERENCES accounts (id),
    identity        text    NOT NULL,
    trust_status    text    NOT NULL,
    confirmed       boolean NOT NULL,
    revoked         boolean NOT NULL,
    first_seen      integer,
    last_seen       integer,
    type            text    NOT NULL,
    browser         text    NOT NULL,
    os              text    NOT NULL,
    last_ip_address text    NOT NULL
);

-- One device of an identity that is not revoked.
CREATE UNIQUE INDEX devices_current ON devices (user_id, identity) WHERE NOT revoked;
CREATE INDEX devices_by_user ON devices (user_id, last_seen, id);

CREATE TABLE device_tokens (
    hash      blob    NOT NULL PRIMARY KEY,
    device_id text    NOT NULL REFERENCES devices (id),
    issued_at integer
);

CREATE INDEX device_tokens_by_device ON device_tokens (device_id, issued_at, hash);

CREATE TABLE sessions (
    id              text    NOT NULL PRIMARY KEY,
    user_id         text    NOT NULL REFERENCES accounts (id),
    device_id       text    NOT NULL REFERENCES devices (id),
    device_identity text    NOT NULL,
    trust_level     text    NOT NULL,
    risk_score      integer NOT NULL,
    created_at      integer,
    last_activity   integer,
    expires_at      integer,
    max_expires_at  integer,
    ip_address      text    NOT NULL,
    ended_at        integer,
    end_reason      text    NOT NULL
);

CREATE INDEX sessions_by_user ON sessions (user_id, created_at, id);
CREATE INDEX sessions_living ON sessions (user_id, expires_at) WHERE ended_at IS NULL;

CREATE TABLE refresh_tokens (
    hash       blob    NOT NULL PRIMARY KEY,
    session_id text    NOT NULL REFERENCES sessions (id),
    issued_at  integer,
    expires_at integer,
    spent_at   integer
);

CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session_id);

CREATE TABLE challenges (
    id         text    NOT NULL PRIMARY KEY,
    session_id text    NOT NULL REFERENCES sessions (id),
    user_id    text    NOT NULL REFERENCES accounts (id),
    method     text    NOT NULL,
    code_hash  blob    NOT NULL,
    attempts   integer NOT NULL,
    state      text    NOT NULL,
    created_at integer,
    expires_at integer
);

CREATE INDEX challenges_by_end ON challenges (expires_at);

-- No foreign key: what happened stays true, also of people without an account.
CREATE TABLE audit_events (
    id      text    NOT NULL PRIMARY KEY,
    time    integer NOT NULL,
    type    text    NOT NULL,
    user_id text,
    success boolean NOT NULL,
    details text    NOT NULL
);

-- Searches read these backwards, and count from them alone.
CREATE INDEX audit_events_by_user ON audit_events (user_id, time, id);
CREATE INDEX audit_events_by_user_type ON audit_events (user_id, type, time, id);
CREATE INDEX audit_events_by_time ON audit_events (time, id);

CREATE TABLE lockouts (
    key          text    NOT NULL PRIMARY KEY,
    failures     integer NOT NULL,
    first_at     integer,
    locked_until integer
);

CREATE INDEX lockouts_by_start ON lockouts (first_at);

CREATE TABLE signing_keys (
    id         text    NOT NULL PRIMARY KEY,
    public_key blob    NOT NULL,
    seen_at    integer NOT NULL
);

-- At most one row.
CREATE TABLE root_secret (
    id     integer PRIMARY KEY CHECK (id = 1),
    secret blob    NOT NULL
);
