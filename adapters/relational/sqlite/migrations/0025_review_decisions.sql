-- What operators have decided, in order, for the notices to the submitters.
CREATE INDEX reviews_by_operator ON reviews (decided_at, id) WHERE decided_by = 'operator';
