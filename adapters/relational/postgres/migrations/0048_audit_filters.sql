-- For the filters by actor and by server of the audit log. The conditions come first, so that events without these details, which
-- are most, cost nothing. jsonb refuses the character 0. Old events name a person without "person:". An entry of an index is
-- limited, a detail is not. The first two are for pages, the others for the stream.
CREATE INDEX audit_events_by_actor ON audit_events (
    left(replace(replace(details, '\u0000', '\u0001')::jsonb ->> 'actor', 'person:', ''), 256) COLLATE "C", time, id
) WHERE strpos(details, '"actor":"') > 0;
CREATE INDEX audit_events_by_server ON audit_events (
    left(replace(details, '\u0000', '\u0001')::jsonb ->> 'serverName', 256) COLLATE "C", time, id
) WHERE strpos(details, '"serverName":"') > 0;
CREATE INDEX audit_events_by_actor_position ON audit_events (
    left(replace(replace(details, '\u0000', '\u0001')::jsonb ->> 'actor', 'person:', ''), 256) COLLATE "C", _position
) WHERE strpos(details, '"actor":"') > 0 AND _position IS NOT NULL;
CREATE INDEX audit_events_by_server_position ON audit_events (
    left(replace(details, '\u0000', '\u0001')::jsonb ->> 'serverName', 256) COLLATE "C", _position
) WHERE strpos(details, '"serverName":"') > 0 AND _position IS NOT NULL;
