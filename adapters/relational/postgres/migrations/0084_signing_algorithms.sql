-- Public keys of other algorithms than Ed25519, in PKIX form. Earlier versions read signing_keys only.
CREATE TABLE signing_keys_pkix (
    id         text        COLLATE "C" PRIMARY KEY,
    public_key bytea       NOT NULL,
    seen_at    timestamptz NOT NULL
);
