-- The last tests of each webhook: how the receiver answered.
CREATE TABLE webhook_tests (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook  TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    sent_at  INTEGER NOT NULL,
    status   INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    problem  TEXT    NOT NULL
) STRICT;
CREATE INDEX webhook_tests_in_order ON webhook_tests (webhook, sequence);
