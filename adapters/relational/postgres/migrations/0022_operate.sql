-- A grant may allow its holder to operate.
ALTER TABLE grants DROP CONSTRAINT grants_action_check;
ALTER TABLE grants ADD CONSTRAINT grants_action_check CHECK (action IN ('publish', 'edit', 'review', 'operate'));
