-- Reads look at no version that they do not return: the indexes of versions that are not deleted, in the orders in which they are
-- listed. The form of the second condition keeps the index of all latest versions from being taken for it.
CREATE INDEX versions_living ON versions (name, version) WHERE status <> 'deleted';
CREATE INDEX versions_living_latest ON versions (name, version) WHERE is_latest = 1 AND status IS NOT 'deleted';
CREATE INDEX versions_living_by_version ON versions (version, name) WHERE status <> 'deleted';
CREATE INDEX versions_living_by_publication ON versions (name, published_at) WHERE status <> 'deleted';

-- Searches of one and two characters: these are the beginning of some trigram. So that there is one at each place of a name, two
-- characters that no name has follow it.
DROP TRIGGER server_parts_follow;
INSERT INTO server_parts (server_parts) VALUES ('delete-all');
INSERT INTO server_parts (rowid, name) SELECT id, name || char(1, 1) FROM servers ORDER BY id;
CREATE TRIGGER server_parts_follow AFTER INSERT ON servers BEGIN
    INSERT INTO server_parts (rowid, name) VALUES (new.id, new.name || char(1, 1));
END;
CREATE VIRTUAL TABLE server_trigrams USING fts5vocab (server_parts, instance);
