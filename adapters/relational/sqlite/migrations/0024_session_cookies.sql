-- With which cookie a browser names its session, and the trust level of the session when it was issued. Only the hash is kept.
CREATE TABLE session_cookies (
    hash        blob NOT NULL PRIMARY KEY,
    session_id  text NOT NULL UNIQUE REFERENCES sessions (id) ON DELETE CASCADE,
    trust_level text NOT NULL,
    issued_at   integer
);
