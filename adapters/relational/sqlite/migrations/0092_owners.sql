-- Who answers for servers: a team and how to reach it. The catalogue finds servers without an owner, so that a change puts its server into
-- the backlog of the catalogue, as this migration does with all.
CREATE TABLE server_owners (
    name    TEXT NOT NULL PRIMARY KEY REFERENCES servers (name) ON DELETE CASCADE,
    owner   TEXT NOT NULL,
    contact TEXT NOT NULL
) STRICT;
INSERT INTO catalogue_backlog (name) SELECT name FROM versions WHERE is_latest ON CONFLICT DO NOTHING;
CREATE TRIGGER server_owners_added_are_listed AFTER INSERT ON server_owners BEGIN
    INSERT INTO catalogue_backlog (name) SELECT new.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = new.name);
END;
CREATE TRIGGER server_owners_changed_are_listed AFTER UPDATE ON server_owners BEGIN
    INSERT INTO catalogue_backlog (name) SELECT new.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = new.name);
END;
CREATE TRIGGER server_owners_removed_are_listed AFTER DELETE ON server_owners BEGIN
    INSERT INTO catalogue_backlog (name) SELECT old.name WHERE NOT EXISTS (SELECT 1 FROM catalogue_backlog WHERE name = old.name);
END;
