package authrecords

import (
	"encoding/json"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// detailFilters are the conditions, in the words of the indexes, that the first characters of a
// detail are the argument.
type detailFilters struct {
	actor  string // without audit.PersonActor; also that of old changes of the registry, see oldActor
	server string
	run    string // exactly
	whole  string // that there is no run
	few    string // that, for events of one person: faster where no index has the condition
}

var postgresFilters = detailFilters{
	actor: `(strpos(details, '"actor":"') > 0 OR type = 'REGISTRY_CHANGE' AND
		(strpos(details, '"userId":"') > 0 OR strpos(details, '"service":"') > 0)) AND
		left(replace(coalesce(replace(details, '\u0000', '\u0001')::jsonb ->> 'actor',
		replace(details, '\u0000', '\u0001')::jsonb ->> 'userId',
		'service:' || (replace(details, '\u0000', '\u0001')::jsonb ->> 'service')), 'person:', ''), 256) COLLATE "C" = ?`,
	server: `strpos(details, '"serverName":"') > 0 AND
		left(replace(details, '\u0000', '\u0001')::jsonb ->> 'serverName', 256) COLLATE "C" = ?`,
	run: `replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf' IS NOT NULL AND
		(replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf') COLLATE "C" = ?`,
	whole: `replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf' IS NULL`,
	// PostgreSQL expects that half of the events meet a CASE, but hardly any event a comparison with
	// strpos, for which it would rather sort all events of a person than read the first ones by an index.
	few: `CASE WHEN strpos(details, '"partOf":') = 0 THEN true
		ELSE replace(details, '\u0000', '\u0001')::jsonb ->> 'partOf' IS NULL END`,
}

var sqliteFilters = detailFilters{
	actor: `(instr(details, '"actor":"') > 0 OR type = 'REGISTRY_CHANGE' AND
		(instr(details, '"userId":"') > 0 OR instr(details, '"service":"') > 0)) AND substr(replace(coalesce(details ->> '$.actor',
		details ->> '$.userId', 'service:' || (details ->> '$.service')), 'person:', ''), 1, 256) = ?`,
	server: `instr(details, '"serverName":"') > 0 AND substr(details ->> '$.serverName', 1, 256) = ?`,
	run:    `details ->> '$.partOf' IS NOT NULL AND details ->> '$.partOf' = ?`,
	whole:  `details ->> '$.partOf' IS NULL`,
	few:    `instr(details, '"partOf":') = 0 OR details ->> '$.partOf' IS NULL`,
}

// maxIndexed is how many characters of a detail the indexes have.
const maxIndexed = 256

// indexed returns a detail as the indexes have it.
func indexed(detail string) string {
	text := []rune(strings.ReplaceAll(strings.ToValidUTF8(detail, "\ufffd"), "\x00", "\x01"))
	return string(text[:min(len(text), maxIndexed)])
}

// hasDetail is the condition that the details of an event have a member, as their text has it. Both
// databases compare it with the case.
const hasDetail = "replace(details, ?, '') <> details"

// member returns a member of a JSON object as text. In a string within the object, its quotes would
// be escaped.
func member(name, value string) string {
	text, _ := json.Marshal(audit.Text(value)) // a text always has a JSON form
	return `"` + name + `":` + string(text)
}

// oldActor returns the member by which changes of the registry named an actor before they had
// audit.DetailActor.
func oldActor(actor string) string {
	if service, ok := strings.CutPrefix(actor, audit.ServiceActor); ok {
		return member("service", service)
	}
	return member("userId", strings.TrimPrefix(actor, audit.PersonActor))
}

// withIndex returns a query for the same events that an index has: of those of one category, it has
// no parts of runs, and events of other categories than audit.RegistryChange never are.
func withIndex(q authstore.AuditQuery) authstore.AuditQuery {
	narrow := q.ID != "" || q.Subject != "" || q.Actor != "" || q.Server != "" || q.Run != "" // which others have
	if q.Category != "" && q.Category != audit.RegistryChange && !narrow {
		q.Whole = true
	}
	return q
}

// isRefused reports whether a query is for what failed or was refused, of which there is an index.
func isRefused(q authstore.AuditQuery) bool { return q.Success != nil && !*q.Success }

// selectMatching narrows a selection to the events of a query.
func (l *AuditLog) selectMatching(s *bun.SelectQuery, q authstore.AuditQuery) *bun.SelectQuery {
	filters := sqliteFilters
	if l.db.Kind() == dialect.PG {
		filters = postgresFilters
	}
	if q.ID != "" {
		s.Where("id = ?", q.ID)
	}
	if q.Subject != "" {
		s.Where("user_id = ?", q.Subject)
	}
	if q.Actor != "" {
		old := strings.TrimPrefix(q.Actor, audit.PersonActor)
		s.Where(filters.actor, indexed(strings.ReplaceAll(q.Actor, audit.PersonActor, ""))).
			Where(hasDetail+" OR "+hasDetail+" OR "+hasDetail,
				member(audit.DetailActor, q.Actor), member(audit.DetailActor, old), oldActor(q.Actor))
	}
	if q.Server != "" {
		s.Where(filters.server, indexed(q.Server)).Where(hasDetail, member(audit.DetailServer, q.Server))
	}
	if q.Run != "" {
		s.Where(filters.run, indexed(q.Run))
	}
	switch {
	case q.Whole && (q.Subject != "" || isRefused(q)):
		s.Where(filters.few)
	case q.Whole:
		s.Where(filters.whole)
	}
	if q.Category != "" {
		s.Where("type = ?", q.Category)
	}
	switch {
	case isRefused(q):
		s.Where("NOT success") // as in their index
	case q.Success != nil:
		s.Where("success")
	}
	if !q.After.IsZero() {
		s.Where("time > ?", database.NewInstant(q.After))
	}
	if !q.Before.IsZero() {
		s.Where("time < ?", database.NewInstant(q.Before))
	}
	return s
}
