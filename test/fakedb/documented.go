package fakedb

import "github.com/tollgate-dev/tollgate/core/catalogue"

// documentedMethods returns the methods that a new database holds (contract M-9).
func documentedMethods() []catalogue.Method {
	return []catalogue.Method{
		{ID: 1081, Path: "/api/services.{format}", ServiceID: 223, ServiceName: "api", Parameters: []string{"format"}},
		{
			ID: 1087, Path: "/server/time.{format}", ServiceID: 227, ServiceName: "server", Parameters: []string{
				"format",
			},
		},
		{
			ID: 1091, Path: "/server/codes.{format}", ServiceID: 227, ServiceName: "server", Parameters: []string{
				"format",
			},
		},
		{
			ID: 1093, Path: "/server/admin.{format}", ServiceID: 227, ServiceName: "server", Parameters: []string{
				"format",
			},
		},
		{ID: 1097, Path: "/api/usage.{format}", ServiceID: 223, ServiceName: "api", Parameters: []string{"format"}},
		{ID: 1103, Path: "/api/methods.{format}", ServiceID: 223, ServiceName: "api", Parameters: []string{"format"}},
		{ID: 1109, Path: "/api/versions.{format}", ServiceID: 223, ServiceName: "api", Parameters: []string{"format"}},
		{ID: 1117, Path: "/api/changelog.{format}", ServiceID: 223, ServiceName: "api", Parameters: []string{"format"}},
		{
			ID: 1123, Path: "/resources/printers.{format}", ServiceID: 229, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1129, Path: "/resources/infosessions.{format}", ServiceID: 229, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1153, Path: "/courses/{department}.{format}", ServiceID: 239, ServiceName: "courses",
			Parameters: []string{"department", "format"},
		},
		{
			ID: 1163, Path: "/courses/{department}/{number}.{format}", ServiceID: 239, ServiceName: "courses",
			Parameters: []string{"department", "number", "format"},
		},
		{
			ID: 1171, Path: "/courses/{department}/{number}/schedule.{format}", ServiceID: 239, ServiceName: "courses",
			Parameters: []string{"department", "number", "format"},
		},
		{
			ID: 1181, Path: "/courses/{subject}/{number}/prerequisites.{format}", ServiceID: 239,
			ServiceName: "courses", Parameters: []string{"subject", "number", "format"},
		},
		{
			ID: 1187, Path: "/terms/{term}/examschedule.{format}", ServiceID: 241, ServiceName: "terms",
			Parameters: []string{"term", "format"},
		},
		{
			ID: 1193, Path: "/terms/{term}/{subject}/{number}/schedule.{format}", ServiceID: 241, ServiceName: "terms",
			Parameters: []string{"term", "subject", "number", "format"},
		},
		{
			ID: 1213, Path: "/buildings/list.{format}", ServiceID: 257, ServiceName: "buildings", Parameters: []string{
				"format",
			},
		},
		{
			ID: 1217, Path: "/buildings/{building}.{format}", ServiceID: 257, ServiceName: "buildings",
			Parameters: []string{"building", "format"},
		},
		{
			ID: 1223, Path: "/buildings/{building}/{room}/courses.{format}", ServiceID: 257, ServiceName: "buildings",
			Parameters: []string{"building", "room", "format"},
		},
		{
			ID: 1229, Path: "/resources/academics/groups.{format}", ServiceID: 263, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1231, Path: "/resources/academics/organizations.{format}", ServiceID: 263, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1237, Path: "/resources/academics/subjects.{format}", ServiceID: 263, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1249, Path: "/resources/academics/terms.{format}", ServiceID: 263, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1259, Path: "/resources/academics/instructions.{format}", ServiceID: 263, ServiceName: "resources",
			Parameters: []string{"format"},
		},
		{
			ID: 1277, Path: "/foodservices/products/{id}.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"id", "format"},
		},
		{
			ID: 1279, Path: "/foodservices/products/search.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
		{
			ID: 1283, Path: "/foodservices/outlets.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
		{
			ID: 1289, Path: "/foodservices/watcard.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
		{
			ID: 1291, Path: "/foodservices/{year}/{week}/{id}/menu.{format}", ServiceID: 269,
			ServiceName: "foodservices", Parameters: []string{"year", "week", "id", "format"},
		},
		{
			ID: 1297, Path: "/foodservices/{year}/{week}/{id}/notes.{format}", ServiceID: 269,
			ServiceName: "foodservices", Parameters: []string{"year", "week", "id", "format"},
		},
		{
			ID: 1301, Path: "/foodservices/{year}/{week}/{id}/announcements.{format}", ServiceID: 269,
			ServiceName: "foodservices", Parameters: []string{"year", "week", "id", "format"},
		},
		{
			ID: 1303, Path: "/foodservices/menu.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
		{
			ID: 1307, Path: "/foodservices/notes.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
		{
			ID: 1319, Path: "/foodservices/announcements.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
		{
			ID: 1321, Path: "/foodservices/diets.{format}", ServiceID: 269, ServiceName: "foodservices",
			Parameters: []string{"format"},
		},
	}
}
