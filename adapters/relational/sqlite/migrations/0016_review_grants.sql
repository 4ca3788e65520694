-- A grant may allow its holder to review. SQLite cannot change a constraint, so the table is made again.
CREATE TABLE review_grants (
    holder  TEXT NOT NULL,
    action  TEXT NOT NULL CHECK (action IN ('publish', 'edit', 'review')),
    pattern TEXT NOT NULL,
    PRIMARY KEY (holder, action, pattern)
) STRICT, WITHOUT ROWID;
INSERT INTO review_grants (holder, action, pattern) SELECT holder, action, pattern FROM grants;
DROP TABLE grants;
ALTER TABLE review_grants RENAME TO grants;
