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

-- The names of tools in the approved lists of the latest versions, made with the rows of the catalogue. A change of a list puts its
-- server into the backlog of the catalogue.
CREATE TABLE tool_names (
    tool   text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    PRIMARY KEY (tool, server)
);
CREATE INDEX tool_names_of_server ON tool_names (server);
INSERT INTO catalogue_backlog (name) SELECT DISTINCT name FROM tool_lists WHERE true ON CONFLICT DO NOTHING;
CREATE FUNCTION list_changed_tools() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogue_backlog (name) VALUES (CASE WHEN TG_OP = 'DELETE' THEN old.name ELSE new.name END)
        ON CONFLICT (name) DO UPDATE SET name = excluded.name;
    RETURN NULL;
END $$;
CREATE TRIGGER tool_lists_are_listed AFTER INSERT OR UPDATE OR DELETE ON tool_lists FOR EACH ROW EXECUTE FUNCTION list_changed_tools();
