-- For the parts of an import or of a read of a mirror, and for pages without them. jsonb refuses the character 0.
CREATE INDEX audit_events_by_run ON audit_events (
    ((replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf') COLLATE "C"), time, id
) WHERE replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf' IS NOT NULL;
CREATE INDEX audit_events_whole ON audit_events (time, id) WHERE replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf' IS NULL;
