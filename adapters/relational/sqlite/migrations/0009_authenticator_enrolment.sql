-- When the authenticator of an account was enrolled, and by which session; none for an operator. One that was enrolled before
-- these columns, or by a service that does not know of them, has no time: it counts if it is active, and cannot be activated.
ALTER TABLE accounts ADD COLUMN mfa_enrolled_at integer;
ALTER TABLE accounts ADD COLUMN mfa_enrolled_in text NOT NULL DEFAULT '';
