-- The headers with which remotes are asked for their tools, sealed, with the other fields of their kind as JSON.
CREATE TABLE tool_sources (
    name       text COLLATE "C" PRIMARY KEY,
    settings   text NOT NULL,
    managed_by text COLLATE "C" NOT NULL
);
