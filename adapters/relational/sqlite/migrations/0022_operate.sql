-- A grant may allow its holder to operate. SQLite cannot change a constraint, so the table is made again.
CREATE TABLE operate_grants (
    holder  TEXT NOT NULL,
    action  TEXT NOT NULL CHECK (action IN ('publish', 'edit', 'review', 'operate')),
    pattern TEXT NOT NULL,
    PRIMARY KEY (holder, action, pattern)
) STRICT, WITHOUT ROWID;
INSERT INTO operate_grants (holder, action, pattern) SELECT holder, action, pattern FROM grants;
DROP TABLE grants;
ALTER TABLE operate_grants RENAME TO grants;
