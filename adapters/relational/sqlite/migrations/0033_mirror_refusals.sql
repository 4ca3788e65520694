-- How many versions the last comparison refused by each rule: "rule number, rule number".
ALTER TABLE mirrors ADD COLUMN refused TEXT NOT NULL DEFAULT '';
