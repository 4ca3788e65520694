-- Sessions are kept long after their refresh tokens are gone, so retention notes those whose tokens it has removed and looks at
-- them no more. Whatever refers to a session is found by it when the session goes.
ALTER TABLE sessions ADD COLUMN has_tokens boolean NOT NULL DEFAULT true;
CREATE INDEX sessions_uncleared_by_expiry ON sessions (expires_at) WHERE has_tokens;
CREATE INDEX sessions_uncleared_by_end ON sessions (ended_at) WHERE has_tokens AND ended_at IS NOT NULL;
CREATE INDEX challenges_by_session ON challenges (session_id);
