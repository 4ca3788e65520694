-- The registry: servers, their versions, the addresses of their remotes, and the grants.
-- Text that callers order or compare is bytewise (COLLATE "C"), whatever the locale of the database.

-- One row per server name. It is what writers of a server lock, and what the search looks through.
CREATE TABLE servers (
    name text COLLATE "C" NOT NULL PRIMARY KEY
);

CREATE TABLE versions (
    name              text COLLATE "C" NOT NULL REFERENCES servers (name),
    version           text COLLATE "C" NOT NULL,
    status            text NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
    status_message    text NOT NULL,
    status_changed_at timestamptz NOT NULL,
    published_at      timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    is_latest         boolean NOT NULL,
    document          bytea NOT NULL, -- as it was sent: jsonb would lose its order and its numbers
    CONSTRAINT versions_exist_once PRIMARY KEY (name, version),
    CONSTRAINT versions_publication UNIQUE (name, published_at)
);
CREATE UNIQUE INDEX versions_one_latest ON versions (name) WHERE is_latest;
CREATE INDEX versions_by_version ON versions (version, name);
CREATE INDEX versions_by_update ON versions (updated_at, name, version);

-- Who owns the address of a remote while a version that is not deleted has it.
CREATE TABLE remote_owners (
    url  text COLLATE "C" NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL REFERENCES servers (name),
    UNIQUE (url, name)
);
CREATE INDEX remote_owners_by_name ON remote_owners (name);

-- The addresses of every version, deleted ones too. claim is the address while the version counts for the owner.
CREATE TABLE remotes (
    name    text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    url     text COLLATE "C" NOT NULL,
    claim   text COLLATE "C" CHECK (claim = url),
    PRIMARY KEY (name, version, url),
    FOREIGN KEY (name, version) REFERENCES versions (name, version),
    FOREIGN KEY (claim, name) REFERENCES remote_owners (url, name)
);
CREATE INDEX remotes_by_url ON remotes (url, name);
CREATE INDEX remotes_by_claim ON remotes (claim, name) WHERE claim IS NOT NULL;

CREATE TABLE grants (
    holder  text COLLATE "C" NOT NULL,
    action  text COLLATE "C" NOT NULL CHECK (action IN ('publish', 'edit')),
    pattern text COLLATE "C" NOT NULL,
    PRIMARY KEY (holder, action, pattern)
);

-- The search finds parts of names by their trigrams where the server has that extension and lets us use it; the same
-- query is right, and slower, without.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX servers_by_part ON servers USING gin (lower(name) gin_trgm_ops);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'no trigram index: %', SQLERRM;
END
$$;
