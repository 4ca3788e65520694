-- The people who were ever responsible for a document of a version: who published it, or created the policies by which it was
-- published. Who published without review before this migration is not known here.
CREATE TABLE responsible (
    name    text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    person  text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, version, person)
);
INSERT INTO responsible (name, version, person)
    SELECT DISTINCT r.name, r.version, r.submitter FROM reviews AS r WHERE r.state = 'approved' AND r.policy = '' AND r.submitter NOT LIKE '%:%'
    UNION SELECT r.name, r.version, m.value FROM reviews AS r, jsonb_array_elements_text(CASE WHEN r.makers LIKE '[%]' THEN r.makers::jsonb ELSE '[]' END) AS m (value) WHERE r.state = 'approved';
