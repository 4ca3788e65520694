-- For which person a cookie was issued: a cookie is compared with it, so that a copy of a session with another person is of no use.
-- Cookies of instances of earlier versions have none; they are compared with the stored session.
ALTER TABLE session_cookies ADD COLUMN user_id uuid;
UPDATE session_cookies SET user_id = (SELECT user_id FROM sessions WHERE sessions.id = session_cookies.session_id);
