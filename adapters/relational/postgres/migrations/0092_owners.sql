-- Who answers for servers: a team and how to reach it. The catalogue finds servers without an owner, so that a change puts its server into
-- the backlog of the catalogue, as this migration does with all.
CREATE TABLE server_owners (
    name    text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES servers (name) ON DELETE CASCADE,
    owner   text NOT NULL,
    contact text NOT NULL
);
INSERT INTO catalogue_backlog (name) SELECT name FROM versions WHERE is_latest ON CONFLICT DO NOTHING;
CREATE TRIGGER server_owners_are_listed AFTER INSERT OR UPDATE OR DELETE ON server_owners FOR EACH ROW EXECUTE FUNCTION list_changed_tools();
