-- From which other registry a mirror took a version; NULL if it was published here. The form is: the name of the mirror, when the
-- document was read in microseconds since 1970-01-01 UTC, and the URL, with a space between them.
ALTER TABLE versions ADD COLUMN origin text COLLATE "C";

-- Other registries whose servers are taken over. Patterns have a space between them. An instance reads while it has the lease.
CREATE TABLE mirrors (
    name            text COLLATE "C" NOT NULL PRIMARY KEY,
    url             text COLLATE "C" NOT NULL,
    include         text COLLATE "C" NOT NULL,
    exclude         text COLLATE "C" NOT NULL,
    read_interval   bigint NOT NULL, -- seconds
    review          text COLLATE "C" NOT NULL CHECK (review IN ('pending', 'trusted')),
    lenient         boolean NOT NULL,
    created_at      timestamptz NOT NULL,
    next_at         timestamptz NOT NULL,
    last_success    timestamptz,
    last_full       timestamptz,
    failing_since   timestamptz,
    failures        integer NOT NULL,
    reason          text COLLATE "C" NOT NULL,
    servers         integer NOT NULL,
    lease_holder    text COLLATE "C" NOT NULL DEFAULT '',
    lease_until     timestamptz
);

-- The states of versions that mirrors have taken, also of documents that are not listed because they wait for review.
CREATE TABLE mirrored_versions (
    mirror       text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    version      text COLLATE "C" NOT NULL,
    hash         bytea NOT NULL,
    status       text COLLATE "C" NOT NULL,
    message      text COLLATE "C" NOT NULL,
    published_at timestamptz,
    review       text COLLATE "C" NOT NULL,
    PRIMARY KEY (mirror, name, version)
);
