-- Quarantine is a gate, not a status: while there is an entry, no program gives what the entry covers another status than deleted,
-- also none of a version that does not know the quarantine. A release deletes the entry first.
-- The error is that of a unique constraint, so that such a program answers with a conflict.
CREATE FUNCTION keep_in_quarantine() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM quarantine WHERE name = NEW.name AND version IN ('', NEW.version)) THEN
        RAISE EXCEPTION 'tollgate: the version is in quarantine' USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER versions_stay_in_quarantine BEFORE INSERT OR UPDATE OF status ON versions
    FOR EACH ROW WHEN (NEW.status <> 'deleted') EXECUTE PROCEDURE keep_in_quarantine();

-- What such a program has shown in the meantime is hidden again. Its present status is the one before the quarantine if none is
-- known. The newest version that is not deleted becomes the latest; the next change of the server finds the right one.
INSERT INTO quarantined_versions (name, version, status, status_message, status_changed_at)
    SELECT v.name, v.version, v.status, v.status_message, v.status_changed_at FROM versions AS v
    WHERE v.status <> 'deleted' AND EXISTS (SELECT 1 FROM quarantine AS q WHERE q.name = v.name AND q.version IN ('', v.version))
    ON CONFLICT DO NOTHING;
UPDATE versions SET status = 'deleted', is_latest = false, updated_at = clock_timestamp(), status_changed_at = clock_timestamp(),
    status_message = (SELECT q.reason FROM quarantine AS q WHERE q.name = versions.name AND q.version IN ('', versions.version)
        ORDER BY q.version DESC LIMIT 1)
    WHERE status <> 'deleted' AND EXISTS (SELECT 1 FROM quarantine AS q WHERE q.name = versions.name AND q.version IN ('', versions.version));
UPDATE versions SET is_latest = true, updated_at = clock_timestamp()
    WHERE name IN (SELECT q.name FROM quarantine AS q)
      AND NOT EXISTS (SELECT 1 FROM versions AS l WHERE l.name = versions.name AND l.is_latest)
      AND NOT EXISTS (SELECT 1 FROM versions AS n WHERE n.name = versions.name
        AND (n.status <> 'deleted', n.published_at) > (versions.status <> 'deleted', versions.published_at));
