-- The policies of publishers: which proof of a domain or of an ID token may do what with which servers. Actions have a comma between
-- them; claims and bound are JSON objects. An empty text is a value that is not there, a NULL time one that has not come.
CREATE TABLE publisher_policies (
    id              TEXT NOT NULL PRIMARY KEY,
    method          TEXT NOT NULL,
    pattern         TEXT NOT NULL,
    actions         TEXT NOT NULL,
    domain          TEXT NOT NULL,
    key_fingerprint TEXT NOT NULL,
    issuer          TEXT NOT NULL,
    subject         TEXT NOT NULL,
    claims          TEXT,
    created_by      TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER,
    last_used_at    INTEGER,
    used_key        TEXT NOT NULL,
    bound           TEXT,
    checked_at      INTEGER NOT NULL, -- 0 before the first time
    gone_since      INTEGER
) STRICT;

-- The policies that a proof may meet.
CREATE INDEX publisher_policies_by_domain ON publisher_policies (method, domain, id);
CREATE INDEX publisher_policies_by_issuer ON publisher_policies (method, issuer, id);

-- The policies whose keys have to be looked for: those that were checked before some time.
CREATE INDEX publisher_policies_due ON publisher_policies (checked_at) WHERE method IN ('dns', 'http');
