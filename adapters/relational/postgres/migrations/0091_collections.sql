-- Collections of servers that the catalogue shows first, with the fields of their kind as JSON.
CREATE TABLE collections (
    name       text COLLATE "C" PRIMARY KEY,
    settings   text NOT NULL,
    managed_by text COLLATE "C" NOT NULL
);
