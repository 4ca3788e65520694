-- Who approved a version last, for the rows of the catalogue.
CREATE INDEX reviews_approved ON reviews (name, version, decided_at) WHERE state = 'approved' AND part = '' AND decided_by <> '';
