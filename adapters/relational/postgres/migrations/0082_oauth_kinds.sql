-- The clients of the authorization server that operators have registered, with their fields and the hash of their secret as JSON.
CREATE TABLE oauth_clients (
    name       text COLLATE "C" PRIMARY KEY,
    settings   text NOT NULL,
    managed_by text COLLATE "C" NOT NULL
);

-- The resources of the authorization server, with their fields as JSON.
CREATE TABLE oauth_resources (
    name       text COLLATE "C" PRIMARY KEY,
    settings   text NOT NULL,
    managed_by text COLLATE "C" NOT NULL
);
