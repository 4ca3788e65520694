-- Receivers of events. The types in events have a space between them; secret is encrypted. An empty text is a value that is not
-- there. One instance at a time delivers to a webhook: the holder of its lease.
CREATE TABLE webhooks (
    id           TEXT NOT NULL PRIMARY KEY,
    url          TEXT NOT NULL,
    events       TEXT NOT NULL,
    pattern      TEXT NOT NULL,
    secret       BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    lease_holder TEXT NOT NULL DEFAULT '',
    lease_until  INTEGER,
    succeeded_at INTEGER,
    failed_at    INTEGER,
    problem      TEXT NOT NULL DEFAULT ''
) STRICT;

-- Events on their way to one webhook.
CREATE TABLE webhook_deliveries (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook  TEXT NOT NULL,
    event    TEXT NOT NULL,
    type     TEXT NOT NULL,
    name     TEXT NOT NULL,
    version  TEXT NOT NULL,
    body     BLOB NOT NULL,
    state    TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    since    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_at  INTEGER NOT NULL,
    ended_at INTEGER,
    problem  TEXT NOT NULL
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, next_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook, sequence) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_of_server ON webhook_deliveries (webhook, name, sequence) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (webhook, state, ended_at, sequence) WHERE state <> 'pending';
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event);
