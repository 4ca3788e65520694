package fakedb

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/core/catalogue"
)

// Methods implements [methodstore.Store].
type Methods struct {
	*table[catalogue.MethodID, catalogue.Method]
}

// NewMethods returns the methods of a database.
func NewMethods(db *Database) *Methods { return &Methods{db.methods} }

// List implements [methodstore.Store].
func (s *Methods) List(ctx context.Context) ([]catalogue.Method, error) {
	methods, err := s.list(ctx, all, func(a, b catalogue.Method) int { return cmp.Compare(a.ID, b.ID) })
	for i := range methods {
		methods[i].Parameters = append([]string{}, methods[i].Parameters...) // not nil
	}
	return methods, err
}

// Put implements [methodstore.Store].
func (s *Methods) Put(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		replaced := map[catalogue.MethodID]bool{}
		for _, m := range methods {
			replaced[m.ID] = true
		}
		if _, err := s.removeAll(ctx, func(m catalogue.Method) bool {
			return replace || replaced[m.ID]
		}); err != nil {
			return err
		}
		return s.insert(ctx, methods...)
	})
}

// documented are the methods that a new database holds (contract M-9): ID, ID of the service, path.
const documented = `
1081 223 /api/services.{format}
1087 227 /server/time.{format}
1091 227 /server/codes.{format}
1093 227 /server/admin.{format}
1097 223 /api/usage.{format}
1103 223 /api/methods.{format}
1109 223 /api/versions.{format}
1117 223 /api/changelog.{format}
1123 229 /resources/printers.{format}
1129 229 /resources/infosessions.{format}
1153 239 /courses/{department}.{format}
1163 239 /courses/{department}/{number}.{format}
1171 239 /courses/{department}/{number}/schedule.{format}
1181 239 /courses/{subject}/{number}/prerequisites.{format}
1187 241 /terms/{term}/examschedule.{format}
1193 241 /terms/{term}/{subject}/{number}/schedule.{format}
1213 257 /buildings/list.{format}
1217 257 /buildings/{building}.{format}
1223 257 /buildings/{building}/{room}/courses.{format}
1229 263 /resources/academics/groups.{format}
1231 263 /resources/academics/organizations.{format}
1237 263 /resources/academics/subjects.{format}
1249 263 /resources/academics/terms.{format}
1259 263 /resources/academics/instructions.{format}
1277 269 /foodservices/products/{id}.{format}
1279 269 /foodservices/products/search.{format}
1283 269 /foodservices/outlets.{format}
1289 269 /foodservices/watcard.{format}
1291 269 /foodservices/{year}/{week}/{id}/menu.{format}
1297 269 /foodservices/{year}/{week}/{id}/notes.{format}
1301 269 /foodservices/{year}/{week}/{id}/announcements.{format}
1303 269 /foodservices/menu.{format}
1307 269 /foodservices/notes.{format}
1319 269 /foodservices/announcements.{format}
1321 269 /foodservices/diets.{format}
`

// documentedMethods returns these methods. The path has the name of the service and the parameters.
func documentedMethods() (all []catalogue.Method) {
	for _, line := range strings.Split(strings.TrimSpace(documented), "\n") {
		var m catalogue.Method
		if _, err := fmt.Sscan(line, &m.ID, &m.ServiceID, &m.Path); err != nil {
			return nil // the tests of methods fail
		}
		m.ServiceName = strings.Split(m.Path, "/")[1]
		for _, found := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(m.Path, -1) {
			m.Parameters = append(m.Parameters, found[1])
		}
		all = append(all, m)
	}
	return all
}
