-- Which servers have changed, in the order of their last changes, so that an instance reads again what it keeps of servers at the
-- cost of those that have changed. Triggers note it, so that no program that writes can forget it.
CREATE TABLE server_changes (
    name       TEXT NOT NULL PRIMARY KEY,
    changed_in INTEGER NOT NULL -- greater than all before it
) STRICT, WITHOUT ROWID;
CREATE INDEX server_changes_by_change ON server_changes (changed_in);

CREATE TRIGGER versions_added_are_noted AFTER INSERT ON versions BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = new.name;
    INSERT INTO server_changes (name, changed_in) SELECT new.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = new.name);
END;
CREATE TRIGGER versions_changed_are_noted AFTER UPDATE ON versions BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = new.name;
    INSERT INTO server_changes (name, changed_in) SELECT new.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = new.name);
END;
CREATE TRIGGER versions_removed_are_noted AFTER DELETE ON versions BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = old.name;
    INSERT INTO server_changes (name, changed_in) SELECT old.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = old.name);
END;

-- Entries of servers that are deleted already change no version, so that 0015_changes does not count them.
CREATE TRIGGER quarantine_added_is_noted AFTER INSERT ON quarantine BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = new.name;
    INSERT INTO server_changes (name, changed_in) SELECT new.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = new.name);
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER quarantine_removed_is_noted AFTER DELETE ON quarantine BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = old.name;
    INSERT INTO server_changes (name, changed_in) SELECT old.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = old.name);
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
