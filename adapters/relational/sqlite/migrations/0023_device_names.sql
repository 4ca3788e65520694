-- People give their devices names.
ALTER TABLE devices ADD COLUMN name TEXT NOT NULL DEFAULT '';
