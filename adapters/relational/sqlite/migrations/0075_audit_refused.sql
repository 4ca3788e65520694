-- For pages of the audit log with what failed or was refused, of which there may be little among millions of events.
CREATE INDEX audit_events_refused ON audit_events (time, id) WHERE NOT success;
