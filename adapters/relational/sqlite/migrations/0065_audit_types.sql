-- For pages of the events of one type of everybody: of sign-ins, for example, which are few among very many others.
CREATE INDEX audit_events_whole_by_type ON audit_events (type, time, id) WHERE details ->> '$.partOf' IS NULL;
