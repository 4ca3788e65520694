-- The last state of a file that each owner has applied: its objects as JSON, without secrets.
CREATE TABLE applied_states (
    owner      text COLLATE "C" NOT NULL PRIMARY KEY,
    apply_id   text COLLATE "C" NOT NULL,
    applied_by text COLLATE "C" NOT NULL,
    applied_at timestamptz NOT NULL,
    objects    text COLLATE "C" NOT NULL
);
