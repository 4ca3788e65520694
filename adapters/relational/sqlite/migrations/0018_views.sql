-- The views of the registry. Patterns have a space between them.
CREATE TABLE registry_views (
    name       TEXT NOT NULL PRIMARY KEY,
    include    TEXT NOT NULL,
    exclude    TEXT NOT NULL,
    deprecated TEXT NOT NULL CHECK (deprecated IN ('show', 'hide')),
    access     TEXT NOT NULL CHECK (access IN ('public', 'token'))
) STRICT;

-- The tokens of views: only their hashes.
CREATE TABLE registry_view_tokens (
    view       TEXT NOT NULL REFERENCES registry_views (name) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (view, name)
) STRICT;

-- Counts the changes of both, as 0015_changes counts those of versions.
ALTER TABLE registry_changes ADD COLUMN views INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER views_added_are_counted AFTER INSERT ON registry_views BEGIN
    UPDATE registry_changes SET views = views + 1;
END;
CREATE TRIGGER views_changed_are_counted AFTER UPDATE ON registry_views BEGIN
    UPDATE registry_changes SET views = views + 1;
END;
CREATE TRIGGER views_removed_are_counted AFTER DELETE ON registry_views BEGIN
    UPDATE registry_changes SET views = views + 1;
END;
CREATE TRIGGER view_tokens_added_are_counted AFTER INSERT ON registry_view_tokens BEGIN
    UPDATE registry_changes SET views = views + 1;
END;
CREATE TRIGGER view_tokens_changed_are_counted AFTER UPDATE ON registry_view_tokens BEGIN
    UPDATE registry_changes SET views = views + 1;
END;
CREATE TRIGGER view_tokens_removed_are_counted AFTER DELETE ON registry_view_tokens BEGIN
    UPDATE registry_changes SET views = views + 1;
END;
