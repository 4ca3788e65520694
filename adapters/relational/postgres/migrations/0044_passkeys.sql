-- Passkeys of people: public keys with which they sign in without a password.
CREATE TABLE passkeys (
    id              uuid        PRIMARY KEY,
    user_id         uuid        NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    credential_id   bytea       NOT NULL UNIQUE,
    public_key      bytea       NOT NULL,
    sign_count      bigint      NOT NULL,
    transports      text        NOT NULL,
    aaguid          bytea       NOT NULL,
    backup_eligible boolean     NOT NULL,
    backed_up       boolean     NOT NULL,
    name            text        NOT NULL,
    created_at      timestamptz NOT NULL,
    last_used_at    timestamptz,
    suspended_at    timestamptz
);
CREATE INDEX passkeys_by_user ON passkeys (user_id, created_at, id);
