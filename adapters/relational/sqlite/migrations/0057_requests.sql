-- Why a person wants the server of a document that somebody else has made, and where it was read.
ALTER TABLE reviews ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN source TEXT NOT NULL DEFAULT '';
