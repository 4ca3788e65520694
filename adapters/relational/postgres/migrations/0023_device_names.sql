-- People give their devices names.
ALTER TABLE devices ADD COLUMN name text NOT NULL DEFAULT '';
