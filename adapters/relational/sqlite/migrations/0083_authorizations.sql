-- The authorization server: requests that wait for a person, what people have granted clients ("families"), the codes and
-- refresh tokens of that, what people have agreed to, and what happened when documents of clients were read. Of secrets
-- only the hash is kept. A family is deleted with its session: one without it would look like one of an assertion, which
-- needs none. URLs of clients and resources are too long for a key of an index, so consents and sightings have a hash of
-- them, and the indexes of clients and subjects have their beginning.
CREATE TABLE oauth_requests (
    hash         blob    NOT NULL PRIMARY KEY,
    browser      blob    NOT NULL,
    client       text    NOT NULL,
    redirect_uri text    NOT NULL,
    challenge    text    NOT NULL,
    resource     text    NOT NULL,
    state        text    NOT NULL,
    scopes       text    NOT NULL,
    trust_level  text    NOT NULL,
    max_age      integer NOT NULL,
    prompt       text    NOT NULL,
    login_hint   text    NOT NULL,
    created_at   integer NOT NULL,
    expires_at   integer NOT NULL
);
CREATE INDEX oauth_requests_by_expiry ON oauth_requests (expires_at);

CREATE TABLE oauth_families (
    id           text    NOT NULL PRIMARY KEY,
    user_id      text    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    session_id   text    REFERENCES sessions (id) ON DELETE CASCADE,
    client       text    NOT NULL,
    client_name  text    NOT NULL,
    redirect_uri text    NOT NULL,
    challenge    text    NOT NULL,
    resource     text    NOT NULL,
    scopes       text    NOT NULL,
    trust_level  text    NOT NULL,
    auth_time    integer,
    provider     text,
    subject      text    NOT NULL,
    group_names  text,
    created_at   integer NOT NULL,
    used_at      integer,
    expires_at   integer NOT NULL,
    ended_at     integer,
    end_reason   text    NOT NULL
);
CREATE INDEX oauth_families_by_user ON oauth_families (user_id, created_at, id);
CREATE INDEX oauth_families_by_session ON oauth_families (session_id);
CREATE INDEX oauth_families_by_client ON oauth_families (substr(client, 1, 200)) WHERE ended_at IS NULL;
CREATE INDEX oauth_families_by_provider ON oauth_families (provider, substr(subject, 1, 200))
    WHERE ended_at IS NULL AND provider IS NOT NULL;
CREATE INDEX oauth_families_by_expiry ON oauth_families (expires_at);
CREATE INDEX oauth_families_by_end ON oauth_families (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE oauth_secrets (
    hash         blob    NOT NULL PRIMARY KEY,
    family_id    text    NOT NULL REFERENCES oauth_families (id) ON DELETE CASCADE,
    code         boolean NOT NULL,
    issued_at    integer NOT NULL,
    expires_at   integer NOT NULL,
    spent_at     integer
);
CREATE INDEX oauth_secrets_by_family ON oauth_secrets (family_id);

CREATE TABLE oauth_consents (
    hash         blob    NOT NULL PRIMARY KEY,
    user_id      text    NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    client       text    NOT NULL,
    host         text    NOT NULL,
    resource     text    NOT NULL,
    scopes       text    NOT NULL,
    terms        blob    NOT NULL,
    given_at     integer NOT NULL,
    expires_at   integer NOT NULL
);
CREATE INDEX oauth_consents_by_user ON oauth_consents (user_id);
CREATE INDEX oauth_consents_by_expiry ON oauth_consents (expires_at);

CREATE TABLE oauth_sightings (
    hash         blob    NOT NULL PRIMARY KEY,
    url          text    NOT NULL,
    name         text    NOT NULL,
    problem      text    NOT NULL,
    seen_at      integer NOT NULL
);
CREATE INDEX oauth_sightings_by_time ON oauth_sightings (seen_at, hash);
