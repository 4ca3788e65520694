-- The name of the authenticator, and the further ones of the account as JSON; they are few, and always read with the account.
ALTER TABLE accounts ADD COLUMN mfa_name text NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN mfa_more text NOT NULL DEFAULT '';
