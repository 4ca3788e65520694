-- The policies of publishers: which proof of a domain or of an ID token may do what with which servers. Actions have a comma between
-- them; claims and bound are JSON objects. An empty text is a value that is not there, a NULL time one that has not come.
CREATE TABLE publisher_policies (
    id              text COLLATE "C" NOT NULL PRIMARY KEY,
    method          text COLLATE "C" NOT NULL,
    pattern         text COLLATE "C" NOT NULL,
    actions         text COLLATE "C" NOT NULL,
    domain          text COLLATE "C" NOT NULL,
    key_fingerprint text COLLATE "C" NOT NULL,
    issuer          text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,
    claims          text COLLATE "C",
    created_by      text COLLATE "C" NOT NULL,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,
    last_used_at    timestamptz,
    used_key        text COLLATE "C" NOT NULL,
    bound           text COLLATE "C",
    checked_at      timestamptz NOT NULL, -- 1970-01-01 before the first time
    gone_since      timestamptz
);

-- The policies that a proof may meet.
CREATE INDEX publisher_policies_by_domain ON publisher_policies (method, domain, id);
CREATE INDEX publisher_policies_by_issuer ON publisher_policies (method, issuer, id);

-- The policies whose keys have to be looked for: those that were checked before some time.
CREATE INDEX publisher_policies_due ON publisher_policies (checked_at) WHERE method IN ('dns', 'http');
