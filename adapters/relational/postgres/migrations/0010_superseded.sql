-- The hash that the last password change replaced, and when: for a moment, the old password is known not to be a guess. And the code
-- of a challenge that was delivered although a newer one was on its way: it counts if that one cannot be delivered.
ALTER TABLE accounts
    ADD COLUMN replaced_hash text NOT NULL DEFAULT '',
    ADD COLUMN replaced_at   timestamptz;
ALTER TABLE challenges ADD COLUMN standby_hash bytea;
