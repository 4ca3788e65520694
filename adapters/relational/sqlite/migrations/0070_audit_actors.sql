-- For the filter by actor, in place of the indexes of 0043: changes of the registry by people and service accounts had "userId" or
-- "service" in place of "actor".
DROP INDEX audit_events_by_actor;
DROP INDEX audit_events_by_actor_position;
CREATE INDEX audit_events_by_actor ON audit_events (
    substr(replace(coalesce(details ->> '$.actor', details ->> '$.userId', 'service:' || (details ->> '$.service')), 'person:', ''), 1, 256), time, id
) WHERE (instr(details, '"actor":"') > 0 OR type = 'REGISTRY_CHANGE' AND
    (instr(details, '"userId":"') > 0 OR instr(details, '"service":"') > 0));
CREATE INDEX audit_events_by_actor_position ON audit_events (
    substr(replace(coalesce(details ->> '$.actor', details ->> '$.userId', 'service:' || (details ->> '$.service')), 'person:', ''), 1, 256)
) WHERE (instr(details, '"actor":"') > 0 OR type = 'REGISTRY_CHANGE' AND
    (instr(details, '"userId":"') > 0 OR instr(details, '"service":"') > 0));
