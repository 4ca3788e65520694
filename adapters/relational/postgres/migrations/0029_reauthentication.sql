-- When the person last gave a password or a code in a session; NULL: only when it began.
ALTER TABLE sessions ADD COLUMN reauthenticated_at timestamptz;
