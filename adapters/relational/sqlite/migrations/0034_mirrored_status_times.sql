-- When the other registry changed the status; NULL if it gives no time, and of versions that were taken before.
ALTER TABLE mirrored_versions ADD COLUMN status_changed_at INTEGER;
