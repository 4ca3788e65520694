-- What operators manage: grants have an id, and each object has the name of the file that manages it, if one does.
ALTER TABLE grants ADD COLUMN id text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text;
CREATE UNIQUE INDEX grants_by_id ON grants (id);
ALTER TABLE grants ADD COLUMN managed_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE publisher_policies ADD COLUMN managed_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE registry_views ADD COLUMN managed_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE mirrors ADD COLUMN managed_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN managed_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE review_rules ADD COLUMN managed_by text COLLATE "C" NOT NULL DEFAULT '';

-- The last attempt of a delivery: when it ended, the status of the response (0 for none), and how long it took in microseconds.
ALTER TABLE webhook_deliveries ADD COLUMN attempted_at timestamptz;
ALTER TABLE webhook_deliveries ADD COLUMN status integer NOT NULL DEFAULT 0;
ALTER TABLE webhook_deliveries ADD COLUMN duration bigint NOT NULL DEFAULT 0;
CREATE INDEX webhook_deliveries_attempted ON webhook_deliveries (webhook, attempted_at, sequence) WHERE attempted_at IS NOT NULL;
