-- Counts the changes of versions, so that a process knows whether answers that it keeps are still right. Triggers count, so that no
-- program that writes can forget it.
CREATE TABLE registry_changes (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    changes  INTEGER NOT NULL,
    removals INTEGER NOT NULL -- changes by which a version was deleted
);
INSERT INTO registry_changes (id, changes, removals) VALUES (1, 0, 0);

CREATE TRIGGER versions_added_are_counted AFTER INSERT ON versions BEGIN
    UPDATE registry_changes SET changes = changes + 1;
END;
CREATE TRIGGER versions_changed_are_counted AFTER UPDATE ON versions BEGIN
    UPDATE registry_changes SET changes = changes + 1, removals = removals + (new.status = 'deleted' AND old.status <> 'deleted');
END;
CREATE TRIGGER versions_removed_are_counted AFTER DELETE ON versions BEGIN
    UPDATE registry_changes SET changes = changes + 1, removals = removals + 1;
END;
