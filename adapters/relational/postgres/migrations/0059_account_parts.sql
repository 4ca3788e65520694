-- Operators find people by a part of the e-mail address or the name: by every three characters in a row. The letters A to Z are the same
-- in either case, as in SQLite. It needs no extension.
CREATE FUNCTION account_parts(words text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT COST 1000 AS $$
    SELECT ARRAY(SELECT substr(lower($1), i, 3) FROM generate_series(1, length($1) - 2) AS i)
$$;
CREATE INDEX accounts_by_parts ON accounts USING gin (account_parts((email || ' ' || name) COLLATE "C")) WITH (fastupdate = off);
