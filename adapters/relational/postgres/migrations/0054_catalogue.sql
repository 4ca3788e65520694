-- The catalogue: what people see of the latest version of each server, and find it by. Names of servers whose row is not up to date
-- are in catalogue_backlog; triggers put them there, so that no program that writes can forget it, not even one of the version before.
CREATE TABLE catalogue (
    name         text COLLATE "C" PRIMARY KEY,
    title        text NOT NULL, -- in lower case
    words        text NOT NULL, -- name, title and description, a line each, in lower case
    facets       text NOT NULL, -- each with a space on both sides
    summary      text NOT NULL, -- title and description as they were written, a line each
    published_at timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    living       boolean NOT NULL, -- not deleted
    spread       bigint NOT NULL -- a number that spreads the names; the servers with the least ones are a sample
);
CREATE INDEX catalogue_living ON catalogue (name) WHERE living;
CREATE INDEX catalogue_by_publication ON catalogue (published_at DESC, name);
CREATE INDEX catalogue_by_update ON catalogue (updated_at DESC, name);
CREATE INDEX catalogue_by_spread ON catalogue (spread);

-- The parts of words (0013_living), those of titles after "t:", and the facets, which are longer than parts.
CREATE FUNCTION catalogue_parts(title text, words text, facets text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT COST 1000 AS $$
    SELECT array_to_tsvector(ARRAY(
        SELECT substr($2, i, 3) FROM generate_series(1, length($2)) AS i
        UNION SELECT 't:' || substr($1, i, 3) FROM generate_series(1, length($1)) AS i
        UNION SELECT f FROM unnest(string_to_array(trim($3), ' ')) AS f WHERE f <> ''))
$$;
CREATE INDEX catalogue_by_parts ON catalogue USING gin (catalogue_parts(title, words, facets)) WITH (fastupdate = off);

CREATE TABLE catalogue_backlog (name text COLLATE "C" PRIMARY KEY);
INSERT INTO catalogue_backlog (name) SELECT name FROM versions WHERE is_latest;

-- A change of a name whose row is being made right now waits for that, and then puts the name back: DO NOTHING would not wait.
CREATE FUNCTION list_changed_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogue_backlog (name) VALUES (new.name) ON CONFLICT (name) DO UPDATE SET name = excluded.name;
    RETURN NULL;
END $$;
CREATE TRIGGER versions_are_listed AFTER INSERT OR UPDATE ON versions FOR EACH ROW WHEN (new.is_latest)
    EXECUTE FUNCTION list_changed_version();
