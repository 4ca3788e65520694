-- The views of the registry. Patterns have a space between them.
CREATE TABLE registry_views (
    name       text COLLATE "C" NOT NULL PRIMARY KEY,
    include    text COLLATE "C" NOT NULL,
    exclude    text COLLATE "C" NOT NULL,
    deprecated text COLLATE "C" NOT NULL CHECK (deprecated IN ('show', 'hide')),
    access     text COLLATE "C" NOT NULL CHECK (access IN ('public', 'token'))
);

-- The tokens of views: only their hashes.
CREATE TABLE registry_view_tokens (
    view       text COLLATE "C" NOT NULL REFERENCES registry_views (name) ON DELETE CASCADE,
    name       text COLLATE "C" NOT NULL,
    hash       bytea NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT registry_view_tokens_exist_once PRIMARY KEY (view, name),
    CONSTRAINT registry_view_tokens_hash UNIQUE (hash)
);

-- Counts the changes of both, as 0015_changes counts those of versions.
ALTER TABLE registry_changes ADD COLUMN views bigint NOT NULL DEFAULT 0;

CREATE FUNCTION count_view_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE registry_changes SET views = views + 1 WHERE shard = pg_backend_pid() % 32;
    PERFORM pg_notify('tollgate_registry', '');
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER views_are_counted AFTER INSERT OR UPDATE OR DELETE ON registry_views
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE PROCEDURE count_view_change();
CREATE CONSTRAINT TRIGGER view_tokens_are_counted AFTER INSERT OR UPDATE OR DELETE ON registry_view_tokens
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE PROCEDURE count_view_change();
