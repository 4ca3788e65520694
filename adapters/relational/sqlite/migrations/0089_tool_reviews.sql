-- Reviews of tool lists: part and list_source say of which list; they are empty for a document.
ALTER TABLE reviews ADD COLUMN part TEXT NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN list_source TEXT NOT NULL DEFAULT '';
DROP INDEX reviews_waiting;
CREATE UNIQUE INDEX reviews_waiting ON reviews (name, version, part, list_source) WHERE state = 'pending';

-- Tool lists that wait with the review of a document. The columns are those of tool_lists.
CREATE TABLE review_tool_lists (
    review  TEXT NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    part    TEXT NOT NULL,
    source  TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    sender  TEXT NOT NULL,
    policy  TEXT NOT NULL,
    makers  TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (review, part, source)
) STRICT;
