-- The authorization server: requests that wait for a person, what people have granted clients ("families"), the codes and
-- refresh tokens of that, what people have agreed to, and what happened when documents of clients were read. Of secrets
-- only the hash is kept. A family is deleted with its session: one without it would look like one of an assertion, which
-- needs none. URLs of clients and resources are too long for a key of an index, so consents and sightings have a hash of
-- them, and the indexes of clients and subjects have their beginning.
CREATE TABLE oauth_requests (
    hash         bytea       PRIMARY KEY,
    browser      bytea       NOT NULL,
    client       text        COLLATE "C" NOT NULL,
    redirect_uri text        COLLATE "C" NOT NULL,
    challenge    text        COLLATE "C" NOT NULL,
    resource     text        COLLATE "C" NOT NULL,
    state        text        NOT NULL,
    scopes       text        NOT NULL,
    trust_level  text        NOT NULL,
    max_age      bigint      NOT NULL,
    prompt       text        NOT NULL,
    login_hint   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX oauth_requests_by_expiry ON oauth_requests (expires_at);

CREATE TABLE oauth_families (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    session_id   uuid        REFERENCES sessions (id) ON DELETE CASCADE,
    client       text        COLLATE "C" NOT NULL,
    client_name  text        NOT NULL,
    redirect_uri text        COLLATE "C" NOT NULL,
    challenge    text        COLLATE "C" NOT NULL,
    resource     text        COLLATE "C" NOT NULL,
    scopes       text        NOT NULL,
    trust_level  text        NOT NULL,
    auth_time    timestamptz,
    provider     text        COLLATE "C",
    subject      text        COLLATE "C" NOT NULL,
    group_names  text,
    created_at   timestamptz NOT NULL,
    used_at      timestamptz,
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    end_reason   text        NOT NULL
);
CREATE INDEX oauth_families_by_user ON oauth_families (user_id, created_at, id);
CREATE INDEX oauth_families_by_session ON oauth_families (session_id);
CREATE INDEX oauth_families_by_client ON oauth_families (substr(client, 1, 200)) WHERE ended_at IS NULL;
CREATE INDEX oauth_families_by_provider ON oauth_families (provider, substr(subject, 1, 200))
    WHERE ended_at IS NULL AND provider IS NOT NULL;
CREATE INDEX oauth_families_by_expiry ON oauth_families (expires_at);
CREATE INDEX oauth_families_by_end ON oauth_families (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE oauth_secrets (
    hash       bytea       PRIMARY KEY,
    family_id  uuid        NOT NULL REFERENCES oauth_families (id) ON DELETE CASCADE,
    code       boolean     NOT NULL,
    issued_at  timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    spent_at   timestamptz
);
CREATE INDEX oauth_secrets_by_family ON oauth_secrets (family_id);

CREATE TABLE oauth_consents (
    hash       bytea       PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    client     text        COLLATE "C" NOT NULL,
    host       text        COLLATE "C" NOT NULL,
    resource   text        COLLATE "C" NOT NULL,
    scopes     text        NOT NULL,
    terms      bytea       NOT NULL,
    given_at   timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX oauth_consents_by_user ON oauth_consents (user_id);
CREATE INDEX oauth_consents_by_expiry ON oauth_consents (expires_at);

CREATE TABLE oauth_sightings (
    hash    bytea       PRIMARY KEY,
    url     text        COLLATE "C" NOT NULL,
    name    text        NOT NULL,
    problem text        NOT NULL,
    seen_at timestamptz NOT NULL
);
CREATE INDEX oauth_sightings_by_time ON oauth_sightings (seen_at, hash);
