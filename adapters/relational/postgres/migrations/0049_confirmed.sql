-- When the provider last said that the person of an identity may sign in; empty after it has refused.
ALTER TABLE company_identities ADD COLUMN confirmed_at timestamptz;
UPDATE company_identities SET confirmed_at = last_used_at;
