-- Passkeys of people: public keys with which they sign in without a password.
CREATE TABLE passkeys (
    id              text    NOT NULL PRIMARY KEY,
    user_id         text    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    credential_id   blob    NOT NULL UNIQUE,
    public_key      blob    NOT NULL,
    sign_count      integer NOT NULL,
    transports      text    NOT NULL,
    aaguid          blob    NOT NULL,
    backup_eligible integer NOT NULL,
    backed_up       integer NOT NULL,
    name            text    NOT NULL,
    created_at      integer NOT NULL,
    last_used_at    integer,
    suspended_at    integer
);
CREATE INDEX passkeys_by_user ON passkeys (user_id, created_at, id);
