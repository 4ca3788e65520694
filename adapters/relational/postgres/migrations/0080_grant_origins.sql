-- A holder may have one grant by hand or from a file, and the same one from each provider of company sign-in.
ALTER TABLE grants ADD COLUMN provider text COLLATE "C" NOT NULL
    GENERATED ALWAYS AS (CASE WHEN substr(managed_by, 1, 9) = 'provider:' THEN managed_by ELSE '' END) STORED;
ALTER TABLE grants DROP CONSTRAINT grants_pkey;
ALTER TABLE grants ADD PRIMARY KEY (holder, action, pattern, provider);
