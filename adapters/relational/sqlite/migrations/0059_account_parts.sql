-- Operators find people by a part of the e-mail address or the name: by every three characters in a row. Triggers keep the index, so that
-- no program that writes can forget it, not even one of the version before.
CREATE VIRTUAL TABLE account_parts USING fts5 (id UNINDEXED, words, tokenize = 'trigram');
INSERT INTO account_parts (id, words) SELECT id, email || ' ' || name FROM accounts;
CREATE TRIGGER account_parts_begin AFTER INSERT ON accounts BEGIN
    INSERT INTO account_parts (id, words) VALUES (new.id, new.email || ' ' || new.name);
END;
CREATE TRIGGER account_parts_follow AFTER UPDATE ON accounts WHEN new.email <> old.email OR new.name <> old.name BEGIN
    UPDATE account_parts SET words = new.email || ' ' || new.name WHERE id = new.id;
END;
CREATE TRIGGER account_parts_end AFTER DELETE ON accounts BEGIN
    DELETE FROM account_parts WHERE id = old.id;
END;
