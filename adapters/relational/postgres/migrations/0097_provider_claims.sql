-- The names of the claims of the last sign-in, with spaces between them.
ALTER TABLE company_providers ADD COLUMN claims TEXT NOT NULL DEFAULT '';
