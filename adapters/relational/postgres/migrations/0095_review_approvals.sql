-- The first of the two approvals that a dangerous review may need. The second is of another person. first_text is a hash of what was
-- approved.
ALTER TABLE reviews ADD COLUMN first_by text COLLATE "C" NOT NULL DEFAULT ''
    CHECK (first_by = '' OR state IN ('pending', 'approved') AND first_by <> decided_by);
ALTER TABLE reviews ADD COLUMN first_at timestamptz;
ALTER TABLE reviews ADD COLUMN first_text text COLLATE "C" NOT NULL DEFAULT '';

-- How a reviewer wants mail of what waits: at-once, daily or none.
ALTER TABLE review_notices ADD COLUMN mail text COLLATE "C" NOT NULL DEFAULT 'at-once';
