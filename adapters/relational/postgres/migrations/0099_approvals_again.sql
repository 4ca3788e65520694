-- On SQLite, 0094 has made the table of reviews again without the index of 0093.
CREATE INDEX IF NOT EXISTS reviews_approved ON reviews (name, version, decided_at) WHERE state = 'approved' AND part = '' AND decided_by <> '';
