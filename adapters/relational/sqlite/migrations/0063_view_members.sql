-- Who may read a view that people may read: a line each, person:EMAIL or group:PROVIDER/GROUP; no line for everybody who is signed in.
-- Such a view has the access token, because a service of the previous version then refuses it. NULL for other views.
ALTER TABLE registry_views ADD COLUMN members TEXT;
