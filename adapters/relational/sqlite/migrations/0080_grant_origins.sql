-- A holder may have one grant by hand or from a file, and the same one from each provider of company sign-in. SQLite cannot
-- change a primary key, so the table is made again.
CREATE TABLE grants_by_origin (
    holder  TEXT NOT NULL,
    action  TEXT NOT NULL CHECK (action IN ('publish', 'edit', 'review', 'operate')),
    pattern TEXT NOT NULL,
    id      TEXT NOT NULL PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
        || '-' || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    managed_by TEXT NOT NULL DEFAULT '',
    provider   TEXT NOT NULL GENERATED ALWAYS AS (CASE WHEN substr(managed_by, 1, 9) = 'provider:' THEN managed_by ELSE '' END) STORED,
    UNIQUE (holder, action, pattern, provider)
) STRICT, WITHOUT ROWID;
INSERT INTO grants_by_origin (holder, action, pattern, id, managed_by) SELECT holder, action, pattern, id, managed_by FROM grants;
DROP TABLE grants;
ALTER TABLE grants_by_origin RENAME TO grants;
