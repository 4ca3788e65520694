-- Quarantine is a gate, not a status: while there is an entry, no program gives what the entry covers another status than deleted,
-- also none of a version that does not know the quarantine. A release deletes the entry first.

CREATE TRIGGER versions_added_stay_in_quarantine BEFORE INSERT ON versions
WHEN new.status <> 'deleted' AND EXISTS (SELECT 1 FROM quarantine WHERE name = new.name AND version IN ('', new.version)) BEGIN
    SELECT RAISE(ABORT, 'tollgate: the version is in quarantine');
END;

CREATE TRIGGER versions_changed_stay_in_quarantine BEFORE UPDATE OF status ON versions
WHEN new.status <> 'deleted' AND EXISTS (SELECT 1 FROM quarantine WHERE name = new.name AND version IN ('', new.version)) BEGIN
    SELECT RAISE(ABORT, 'tollgate: the version is in quarantine');
END;

-- What such a program has shown in the meantime is hidden again. Its present status is the one before the quarantine if none is
-- known. The newest version that is not deleted becomes the latest; the next change of the server finds the right one.
INSERT INTO quarantined_versions (name, version, status, status_message, status_changed_at)
    SELECT v.name, v.version, v.status, v.status_message, v.status_changed_at FROM versions AS v
    WHERE v.status <> 'deleted' AND EXISTS (SELECT 1 FROM quarantine AS q WHERE q.name = v.name AND q.version IN ('', v.version))
    ON CONFLICT DO NOTHING;
UPDATE versions SET status = 'deleted', is_latest = 0, updated_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), status_changed_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER),
    status_message = (SELECT q.reason FROM quarantine AS q WHERE q.name = versions.name AND q.version IN ('', versions.version)
        ORDER BY q.version DESC LIMIT 1)
    WHERE status <> 'deleted' AND EXISTS (SELECT 1 FROM quarantine AS q WHERE q.name = versions.name AND q.version IN ('', versions.version));
UPDATE versions SET is_latest = 1, updated_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    WHERE name IN (SELECT q.name FROM quarantine AS q)
      AND NOT EXISTS (SELECT 1 FROM versions AS l WHERE l.name = versions.name AND l.is_latest)
      AND NOT EXISTS (SELECT 1 FROM versions AS n WHERE n.name = versions.name
        AND (n.status <> 'deleted', n.published_at) > (versions.status <> 'deleted', versions.published_at));
