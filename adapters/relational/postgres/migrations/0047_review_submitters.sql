-- For what a person has submitted, also through policies.
CREATE INDEX reviews_of_submitter ON reviews (submitter, submitted_at, id);
CREATE INDEX reviews_of_makers ON reviews (submitted_at, id) WHERE makers <> 'null';
