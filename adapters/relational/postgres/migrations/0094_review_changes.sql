-- A reviewer may request changes.
ALTER TABLE reviews DROP CONSTRAINT reviews_state_check;
ALTER TABLE reviews ADD CONSTRAINT reviews_state_check
    CHECK (state IN ('pending', 'approved', 'rejected', 'changes_requested', 'superseded'));
