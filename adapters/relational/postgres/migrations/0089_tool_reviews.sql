-- Reviews of tool lists: part and list_source say of which list; they are empty for a document.
ALTER TABLE reviews ADD COLUMN part text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN list_source text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX reviews_waiting;
CREATE UNIQUE INDEX reviews_waiting ON reviews (name, version, part, list_source) WHERE state = 'pending';

-- Tool lists that wait with the review of a document. The columns are those of tool_lists.
CREATE TABLE review_tool_lists (
    review  text COLLATE "C" NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    part    text COLLATE "C" NOT NULL,
    source  text COLLATE "C" NOT NULL,
    sent_at timestamptz NOT NULL,
    sender  text COLLATE "C" NOT NULL,
    policy  text NOT NULL,
    makers  text NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (review, part, source)
);
