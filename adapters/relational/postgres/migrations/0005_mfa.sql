-- Recovery codes as keyed hashes of 32 bytes, one behind the other; one that was used is taken out. Logins whose password was
-- right and that wait for their second factor.
ALTER TABLE accounts ADD COLUMN mfa_recovery bytea NOT NULL DEFAULT '';

CREATE TABLE pending_logins (
    user_id         uuid        NOT NULL REFERENCES accounts (id),
    device_identity text        COLLATE "C" NOT NULL,
    subject         text        NOT NULL,
    proven          boolean     NOT NULL,
    created_at      timestamptz,
    expires_at      timestamptz,
    PRIMARY KEY (user_id, device_identity)
);

CREATE INDEX pending_logins_by_end ON pending_logins (expires_at);
