-- The groups of the person of an identity, and the provider that said so last: the names as JSON.
ALTER TABLE company_identities ADD COLUMN groups_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE company_identities ADD COLUMN group_names text NOT NULL DEFAULT '[]';
