-- For the filter by actor, in place of the indexes of 0048: changes of the registry by people and service accounts had "userId" or
-- "service" in place of "actor".
DROP INDEX audit_events_by_actor;
DROP INDEX audit_events_by_actor_position;
CREATE INDEX audit_events_by_actor ON audit_events (
    left(replace(coalesce(replace(details, '\u0000', '\u0001')::jsonb ->> 'actor', replace(details, '\u0000', '\u0001')::jsonb ->> 'userId',
        'service:' || (replace(details, '\u0000', '\u0001')::jsonb ->> 'service')), 'person:', ''), 256) COLLATE "C", time, id
) WHERE (strpos(details, '"actor":"') > 0 OR type = 'REGISTRY_CHANGE' AND
    (strpos(details, '"userId":"') > 0 OR strpos(details, '"service":"') > 0));
CREATE INDEX audit_events_by_actor_position ON audit_events (
    left(replace(coalesce(replace(details, '\u0000', '\u0001')::jsonb ->> 'actor', replace(details, '\u0000', '\u0001')::jsonb ->> 'userId',
        'service:' || (replace(details, '\u0000', '\u0001')::jsonb ->> 'service')), 'person:', ''), 256) COLLATE "C", _position
) WHERE (strpos(details, '"actor":"') > 0 OR type = 'REGISTRY_CHANGE' AND
    (strpos(details, '"userId":"') > 0 OR strpos(details, '"service":"') > 0)) AND _position IS NOT NULL;
