-- What decisions need to know of the tools of a list, so that they do not read all of it: a line for each. NULL in rows from before this
-- column; it is then computed from the content.
ALTER TABLE tool_lists ADD COLUMN outline TEXT;

-- What an instance keeps of servers has their tools (0074_server_changes).
CREATE TRIGGER tool_lists_added_are_noted AFTER INSERT ON tool_lists BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = new.name;
    INSERT INTO server_changes (name, changed_in) SELECT new.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = new.name);
END;
CREATE TRIGGER tool_lists_changed_are_noted AFTER UPDATE ON tool_lists BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = new.name;
    INSERT INTO server_changes (name, changed_in) SELECT new.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = new.name);
END;
CREATE TRIGGER tool_lists_removed_are_noted AFTER DELETE ON tool_lists BEGIN
    UPDATE server_changes SET changed_in = (SELECT max(changed_in) + 1 FROM server_changes) WHERE name = old.name;
    INSERT INTO server_changes (name, changed_in) SELECT old.name, (SELECT coalesce(max(changed_in), 0) + 1 FROM server_changes)
        WHERE NOT EXISTS (SELECT 1 FROM server_changes WHERE name = old.name);
END;

-- A program that does not know the column leaves nothing of another content in it.
CREATE TRIGGER tool_outlines_are_dropped AFTER UPDATE OF content ON tool_lists
    WHEN new.content <> old.content AND new.outline IS old.outline BEGIN
    UPDATE tool_lists SET outline = NULL WHERE name = new.name AND version = new.version AND part = new.part AND source = new.source
        AND approved = new.approved;
END;
