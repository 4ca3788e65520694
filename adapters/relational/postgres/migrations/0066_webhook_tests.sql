-- The last tests of each webhook: how the receiver answered.
CREATE TABLE webhook_tests (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook  text COLLATE "C" NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    sent_at  timestamptz NOT NULL,
    status   integer NOT NULL,
    duration bigint NOT NULL,
    problem  text COLLATE "C" NOT NULL
);
CREATE INDEX webhook_tests_in_order ON webhook_tests (webhook, sequence);
