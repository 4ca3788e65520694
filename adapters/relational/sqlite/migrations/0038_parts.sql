-- Searches find names in memory, and nothing reads the index of the parts of names any more.
DROP TRIGGER server_parts_follow;
DROP TABLE server_trigrams;
DROP TABLE server_parts;
