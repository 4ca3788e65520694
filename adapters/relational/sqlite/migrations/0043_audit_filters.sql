-- For the filters by actor and by server of the audit log. Old events name a person without "person:".
-- The first two are for pages, the others, which have the rowid at their end, for the stream.
CREATE INDEX audit_events_by_actor ON audit_events (substr(replace(details ->> '$.actor', 'person:', ''), 1, 256), time, id)
    WHERE instr(details, '"actor":"') > 0;
CREATE INDEX audit_events_by_server ON audit_events (substr(details ->> '$.serverName', 1, 256), time, id)
    WHERE instr(details, '"serverName":"') > 0;
CREATE INDEX audit_events_by_actor_position ON audit_events (substr(replace(details ->> '$.actor', 'person:', ''), 1, 256))
    WHERE instr(details, '"actor":"') > 0;
CREATE INDEX audit_events_by_server_position ON audit_events (substr(details ->> '$.serverName', 1, 256))
    WHERE instr(details, '"serverName":"') > 0;
