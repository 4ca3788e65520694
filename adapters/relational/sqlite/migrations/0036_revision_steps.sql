-- The counters of 0015_changes grow by a random step instead of by one. If the file is replaced by an older copy, the changes that
-- follow would otherwise bring the counters to numbers that they had before, and answers that were kept then would count as current
-- (docs/adr/0012-answers-kept-in-memory.md). They still grow with each change; 8 billion changes fit.
DROP TRIGGER versions_added_are_counted;
DROP TRIGGER versions_changed_are_counted;
DROP TRIGGER versions_removed_are_counted;
CREATE TRIGGER versions_added_are_counted AFTER INSERT ON versions BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER versions_changed_are_counted AFTER UPDATE ON versions BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff),
        removals = removals + (new.status = 'deleted' AND old.status <> 'deleted') * (1 + (random() & 0x7fffffff));
END;
CREATE TRIGGER versions_removed_are_counted AFTER DELETE ON versions BEGIN
    UPDATE registry_changes SET changes = changes + 1 + (random() & 0x7fffffff), removals = removals + 1 + (random() & 0x7fffffff);
END;

DROP TRIGGER views_added_are_counted;
DROP TRIGGER views_changed_are_counted;
DROP TRIGGER views_removed_are_counted;
DROP TRIGGER view_tokens_added_are_counted;
DROP TRIGGER view_tokens_changed_are_counted;
DROP TRIGGER view_tokens_removed_are_counted;
CREATE TRIGGER views_added_are_counted AFTER INSERT ON registry_views BEGIN
    UPDATE registry_changes SET views = views + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER views_changed_are_counted AFTER UPDATE ON registry_views BEGIN
    UPDATE registry_changes SET views = views + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER views_removed_are_counted AFTER DELETE ON registry_views BEGIN
    UPDATE registry_changes SET views = views + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER view_tokens_added_are_counted AFTER INSERT ON registry_view_tokens BEGIN
    UPDATE registry_changes SET views = views + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER view_tokens_changed_are_counted AFTER UPDATE ON registry_view_tokens BEGIN
    UPDATE registry_changes SET views = views + 1 + (random() & 0x7fffffff);
END;
CREATE TRIGGER view_tokens_removed_are_counted AFTER DELETE ON registry_view_tokens BEGIN
    UPDATE registry_changes SET views = views + 1 + (random() & 0x7fffffff);
END;
