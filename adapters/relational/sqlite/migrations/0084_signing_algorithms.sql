-- Public keys of other algorithms than Ed25519, in PKIX form. Earlier versions read signing_keys only.
CREATE TABLE signing_keys_pkix (
    id         text    NOT NULL PRIMARY KEY,
    public_key blob    NOT NULL,
    seen_at    integer NOT NULL
);
