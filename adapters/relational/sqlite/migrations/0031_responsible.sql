-- The people who were ever responsible for a document of a version: who published it, or created the policies by which it was
-- published. Who published without review before this migration is not known here.
CREATE TABLE responsible (
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    person  TEXT NOT NULL,
    PRIMARY KEY (name, version, person)
) STRICT, WITHOUT ROWID;
INSERT INTO responsible (name, version, person)
    SELECT DISTINCT r.name, r.version, r.submitter FROM reviews AS r WHERE r.state = 'approved' AND r.policy = '' AND r.submitter NOT LIKE '%:%'
    UNION SELECT r.name, r.version, m.value FROM reviews AS r, json_each(CASE WHEN r.makers LIKE '[%]' THEN r.makers ELSE '[]' END) AS m WHERE r.state = 'approved';
