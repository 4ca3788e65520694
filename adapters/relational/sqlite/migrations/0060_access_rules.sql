-- The rules by which calls of servers are decided, with their fields as JSON.
CREATE TABLE access_rules (
    name       TEXT NOT NULL PRIMARY KEY,
    settings   TEXT NOT NULL,
    managed_by TEXT NOT NULL
) STRICT;

-- Counts their changes, as 0015_changes counts those of versions.
ALTER TABLE registry_changes ADD COLUMN access INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER access_rules_added_are_counted AFTER INSERT ON access_rules BEGIN
    UPDATE registry_changes SET access = access + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER access_rules_changed_are_counted AFTER UPDATE ON access_rules BEGIN
    UPDATE registry_changes SET access = access + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER access_rules_removed_are_counted AFTER DELETE ON access_rules BEGIN
    UPDATE registry_changes SET access = access + 1 + (random() & 0x7fffffff);
END;
