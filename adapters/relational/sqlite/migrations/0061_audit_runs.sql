-- For the parts of an import or of a read of a mirror, and for pages without them.
CREATE INDEX audit_events_by_run ON audit_events (details ->> '$.partOf', time, id) WHERE details ->> '$.partOf' IS NOT NULL;
CREATE INDEX audit_events_whole ON audit_events (time, id) WHERE details ->> '$.partOf' IS NULL;
