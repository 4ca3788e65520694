-- What retention looks for: sessions by their end, and devices by when they were last seen.
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sessions_by_device ON sessions (device_id);
CREATE INDEX devices_unused ON devices (last_seen) WHERE revoked OR NOT confirmed;
