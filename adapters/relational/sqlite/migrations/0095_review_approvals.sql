-- The first of the two approvals that a dangerous review may need. The second is of another person. first_text is a hash of what was
-- approved.
ALTER TABLE reviews ADD COLUMN first_by TEXT NOT NULL DEFAULT ''
    CHECK (first_by = '' OR state IN ('pending', 'approved') AND first_by <> decided_by);
ALTER TABLE reviews ADD COLUMN first_at INTEGER;
ALTER TABLE reviews ADD COLUMN first_text TEXT NOT NULL DEFAULT '';

-- How a reviewer wants mail of what waits: at-once, daily or none.
ALTER TABLE review_notices ADD COLUMN mail TEXT NOT NULL DEFAULT 'at-once';
