-- Computing the parts of a name takes about 20 µs. With the cost of 0013_living, PostgreSQL computes those of all names instead of
-- reading their index in registries of up to some hundred servers.
ALTER FUNCTION server_parts(text) COST 1000;
