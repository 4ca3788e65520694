-- A delivery that is urgent is sent before all that are not: caches must drop what was put in quarantine.
ALTER TABLE webhook_deliveries ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhook_deliveries_urgent ON webhook_deliveries (webhook, sequence) WHERE state = 'pending' AND urgent;
