-- What a reader is told of a version beside its document, in one column: a listing reads hundreds of rows, and the cost of
-- reading one is that of its columns. The database derives it, so that it cannot differ from the columns it is made of.
-- The form is: name, status, latest (0 or 1), the times of the status, the publication and the update in microseconds since
-- 1970-01-01 UTC, the bytes of the version, each with a space behind it; then the version and the status message.
ALTER TABLE versions ADD COLUMN facts text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
    name || ' ' || status || ' ' || CASE WHEN is_latest THEN '1' ELSE '0' END
    || ' ' || CAST(CAST(extract(epoch FROM status_changed_at AT TIME ZONE 'UTC') * 1000000 AS bigint) AS text)
    || ' ' || CAST(CAST(extract(epoch FROM published_at AT TIME ZONE 'UTC') * 1000000 AS bigint) AS text)
    || ' ' || CAST(CAST(extract(epoch FROM updated_at AT TIME ZONE 'UTC') * 1000000 AS bigint) AS text)
    || ' ' || CAST(octet_length(version) AS text) || ' ' || version || status_message
) STORED;
