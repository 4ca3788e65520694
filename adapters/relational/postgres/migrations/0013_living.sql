-- Reads look at no version that they do not return: the indexes of versions that are not deleted, in the orders in which they are
-- listed. The form of the second condition keeps the index of all latest versions from being taken for it.
CREATE INDEX versions_living ON versions (name, version) WHERE status <> 'deleted';
CREATE INDEX versions_living_latest ON versions (name, version) WHERE CASE WHEN is_latest THEN status <> 'deleted' END;
CREATE INDEX versions_living_by_version ON versions (version, name) WHERE status <> 'deleted';
CREATE INDEX versions_living_by_publication ON versions (name, published_at) WHERE status <> 'deleted';

-- Searches of any length: what a name has at each of its places, three characters long and shorter at the end, so that one or two
-- characters are the beginning of some part. It needs no extension.
CREATE FUNCTION server_parts(name text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT COST 10 AS $$
    SELECT array_to_tsvector(ARRAY(SELECT substr(lower($1), i, 3) FROM generate_series(1, length($1)) AS i))
$$;
CREATE INDEX servers_by_parts ON servers USING gin (server_parts(name)) WITH (fastupdate = off);

-- Programs of the version before search without it too. The last, since it keeps readers waiting until the end.
DROP INDEX IF EXISTS servers_by_part;
