-- The table of methods, with those of the open-data document.

CREATE TABLE methods (
    id           INTEGER NOT NULL PRIMARY KEY,
    path         TEXT NOT NULL,
    service_id   INTEGER NOT NULL,
    service_name TEXT NOT NULL,
    parameters   TEXT NOT NULL, -- a JSON array of names, in the order of the path
    CONSTRAINT methods_path UNIQUE (path)
) STRICT;

INSERT INTO methods (id, path, service_id, service_name, parameters) VALUES
    (1081, '/api/services.{format}', 223, 'api', '["format"]'),
    (1087, '/server/time.{format}', 227, 'server', '["format"]'),
    (1091, '/server/codes.{format}', 227, 'server', '["format"]'),
    (1093, '/server/admin.{format}', 227, 'server', '["format"]'),
    (1097, '/api/usage.{format}', 223, 'api', '["format"]'),
    (1103, '/api/methods.{format}', 223, 'api', '["format"]'),
    (1109, '/api/versions.{format}', 223, 'api', '["format"]'),
    (1117, '/api/changelog.{format}', 223, 'api', '["format"]'),
    (1123, '/resources/printers.{format}', 229, 'resources', '["format"]'),
    (1129, '/resources/infosessions.{format}', 229, 'resources', '["format"]'),
    (1153, '/courses/{department}.{format}', 239, 'courses', '["department","format"]'),
    (1163, '/courses/{department}/{number}.{format}', 239, 'courses', '["department","number","format"]'),
    (1171, '/courses/{department}/{number}/schedule.{format}', 239, 'courses', '["department","number","format"]'),
    (1181, '/courses/{subject}/{number}/prerequisites.{format}', 239, 'courses', '["subject","number","format"]'),
    (1187, '/terms/{term}/examschedule.{format}', 241, 'terms', '["term","format"]'),
    (1193, '/terms/{term}/{subject}/{number}/schedule.{format}', 241, 'terms', '["term","subject","number","format"]'),
    (1213, '/buildings/list.{format}', 257, 'buildings', '["format"]'),
    (1217, '/buildings/{building}.{format}', 257, 'buildings', '["building","format"]'),
    (1223, '/buildings/{building}/{room}/courses.{format}', 257, 'buildings', '["building","room","format"]'),
    (1229, '/resources/academics/groups.{format}', 263, 'resources', '["format"]'),
    (1231, '/resources/academics/organizations.{format}', 263, 'resources', '["format"]'),
    (1237, '/resources/academics/subjects.{format}', 263, 'resources', '["format"]'),
    (1249, '/resources/academics/terms.{format}', 263, 'resources', '["format"]'),
    (1259, '/resources/academics/instructions.{format}', 263, 'resources', '["format"]'),
    (1277, '/foodservices/products/{id}.{format}', 269, 'foodservices', '["id","format"]'),
    (1279, '/foodservices/products/search.{format}', 269, 'foodservices', '["format"]'),
    (1283, '/foodservices/outlets.{format}', 269, 'foodservices', '["format"]'),
    (1289, '/foodservices/watcard.{format}', 269, 'foodservices', '["format"]'),
    (1291, '/foodservices/{year}/{week}/{id}/menu.{format}', 269, 'foodservices', '["year","week","id","format"]'),
    (1297, '/foodservices/{year}/{week}/{id}/notes.{format}', 269, 'foodservices', '["year","week","id","format"]'),
    (1301, '/foodservices/{year}/{week}/{id}/announcements.{format}', 269, 'foodservices', '["year","week","id","format"]'),
    (1303, '/foodservices/menu.{format}', 269, 'foodservices', '["format"]'),
    (1307, '/foodservices/notes.{format}', 269, 'foodservices', '["format"]'),
    (1319, '/foodservices/announcements.{format}', 269, 'foodservices', '["format"]'),
    (1321, '/foodservices/diets.{format}', 269, 'foodservices', '["format"]');
