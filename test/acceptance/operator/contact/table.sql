CREATE TABLE owner_contacts (name text NOT NULL PRIMARY KEY, settings text NOT NULL, managed_by text NOT NULL);
