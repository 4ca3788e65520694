-- Receivers of events. The types in events have a space between them; secret is encrypted. An empty text is a value that is not
-- there. One instance at a time delivers to a webhook: the holder of its lease.
CREATE TABLE webhooks (
    id           text COLLATE "C" NOT NULL PRIMARY KEY,
    url          text COLLATE "C" NOT NULL,
    events       text COLLATE "C" NOT NULL,
    pattern      text COLLATE "C" NOT NULL,
    secret       bytea NOT NULL,
    created_at   timestamptz NOT NULL,
    lease_holder text COLLATE "C" NOT NULL DEFAULT '',
    lease_until  timestamptz,
    succeeded_at timestamptz,
    failed_at    timestamptz,
    problem      text COLLATE "C" NOT NULL DEFAULT ''
);

-- Events on their way to one webhook. A reference to the webhook would make publications wait for the removal of one.
CREATE TABLE webhook_deliveries (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook  text COLLATE "C" NOT NULL,
    event    text COLLATE "C" NOT NULL,
    type     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    version  text COLLATE "C" NOT NULL,
    body     bytea NOT NULL,
    state    text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    since    timestamptz NOT NULL,
    attempts integer NOT NULL,
    next_at  timestamptz NOT NULL,
    ended_at timestamptz,
    problem  text COLLATE "C" NOT NULL
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, next_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook, sequence) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_of_server ON webhook_deliveries (webhook, name, sequence) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (webhook, state, ended_at, sequence) WHERE state <> 'pending';
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event);
