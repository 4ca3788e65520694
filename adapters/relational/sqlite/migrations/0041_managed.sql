-- What operators manage: grants have an id, and each object has the name of the file that manages it, if one does. SQLite cannot add
-- a column with a random default, so the table of grants is made again.
CREATE TABLE grants_with_id (
    holder  TEXT NOT NULL,
    action  TEXT NOT NULL CHECK (action IN ('publish', 'edit', 'review', 'operate')),
    pattern TEXT NOT NULL,
    id      TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
        || '-' || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    managed_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (holder, action, pattern)
) STRICT, WITHOUT ROWID;
INSERT INTO grants_with_id (holder, action, pattern) SELECT holder, action, pattern FROM grants;
DROP TABLE grants;
ALTER TABLE grants_with_id RENAME TO grants;
ALTER TABLE publisher_policies ADD COLUMN managed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE registry_views ADD COLUMN managed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE mirrors ADD COLUMN managed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN managed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE review_rules ADD COLUMN managed_by TEXT NOT NULL DEFAULT '';

-- The last attempt of a delivery: when it ended, the status of the response (0 for none), and how long it took in microseconds.
ALTER TABLE webhook_deliveries ADD COLUMN attempted_at INTEGER;
ALTER TABLE webhook_deliveries ADD COLUMN status INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_deliveries ADD COLUMN duration INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhook_deliveries_attempted ON webhook_deliveries (webhook, attempted_at, sequence) WHERE attempted_at IS NOT NULL;
