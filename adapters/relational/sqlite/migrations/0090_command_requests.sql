-- Sign-ins of commands that wait for a person, and their answers: what asked and from where, the link that holds the answer, and the
-- session in which it was given.
ALTER TABLE links ADD COLUMN asker text NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN asked_from text NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN answer blob;
ALTER TABLE links ADD COLUMN session_id text;
DELETE FROM links WHERE purpose = 'command';
