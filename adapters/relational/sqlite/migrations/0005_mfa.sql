-- Recovery codes as keyed hashes of 32 bytes, one behind the other; one that was used is taken out. Logins whose password was
-- right and that wait for their second factor.
ALTER TABLE accounts ADD COLUMN mfa_recovery blob NOT NULL DEFAULT x'';

CREATE TABLE pending_logins (
    user_id         text    NOT NULL REFERENCES accounts (id),
    device_identity text    NOT NULL,
    subject         text    NOT NULL,
    proven          boolean NOT NULL,
    created_at      integer,
    expires_at      integer,
    PRIMARY KEY (user_id, device_identity)
);

CREATE INDEX pending_logins_by_end ON pending_logins (expires_at);
