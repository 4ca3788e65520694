package adminapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// request is a request of a known caller, as a handler reads it. It collects what is wrong.
type request struct {
	*fiber.Ctx

	api      *API
	who      authority.Caller
	object   *jsonbody.Object  // the body; nil if it was not read
	problems map[string]string // of the path and the query, and of values that were read, by name
	err      error             // of a body that is no JSON object
	cause    error             // the first one of check
	named    string            // the key of the object, if the path does not name it
	action   audit.Action      // what the request does, if the route does not say it

	// find returns the key of an object that the path names by an ID, empty without one. It is
	// optional, for objects with another key.
	find func(ctx context.Context) string
}

// body returns the body. One that is no JSON object has no members.
func (q *request) body() *jsonbody.Object {
	if q.object == nil {
		if q.object, q.err = jsonbody.ReadStrictly(q.Ctx); q.err != nil {
			q.object, _ = jsonbody.Parse([]byte("{}"), true)
		}
	}
	return q.object
}

// check adds what an error of a constructor says about a value that was read, unless err is nil. An
// error that names a field is about that one.
func (q *request) check(name string, err error) {
	f, ok := fault.As(err)
	if err == nil || !ok {
		q.err = errors.Join(q.err, err)
		return
	}
	if q.problems == nil {
		q.problems, q.cause = map[string]string{}, err
	}
	name = cmp.Or(f.Field, name)
	fields := f.Details.Inner("fields")
	for field := range fields {
		q.problems[field] = fields.Text(field)
	}
	if fields == nil {
		q.problems[name] = strings.TrimPrefix(f.Message, name+" ")
	}
}

// problem returns the error of everything that is wrong with the request; nil for nothing.
func (q *request) problem() error {
	if q.err != nil {
		return q.err
	}
	all := map[string]string{}
	maps.Copy(all, q.problems)
	if q.object != nil {
		q.object.RefuseOthers()
		maps.Copy(all, q.object.Problems()) // what could not be read goes before what was read in its place
	}
	if len(all) == 0 {
		return nil
	}
	invalid := auth.InvalidFields(auth.CodeValidation, all)
	invalid.Err = q.cause
	return invalid
}

// param returns a decoded copy of a parameter of the path.
func (q *request) param(name string) string {
	value, err := url.PathUnescape(q.Params(name))
	if err != nil {
		q.check(name, fault.New(fault.Invalid, "is not valid percent-encoded text"))
	}
	return strings.Clone(value)
}

// flag returns a parameter of the query that is true or false; false without it.
func (q *request) flag(name string) bool {
	switch q.query(name) {
	case "true":
		return true
	case "", "false":
	default:
		q.check(name, fault.New(fault.Invalid, "must be true or false"))
	}
	return false
}

// time returns a parameter of the query that is an RFC 3339 time; zero without it.
func (q *request) time(name string) (t time.Time) {
	text := strings.ReplaceAll(q.query(name), " ", "+") // an offset that was not escaped
	if text == "" {
		return t
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.check(name, fault.New(fault.Invalid, "must be an RFC 3339 time, for example 2027-01-01T00:00:00Z"))
	}
	return t
}

// query returns a copy of a parameter of the query.
func (q *request) query(name string) string {
	value := strings.Clone(q.Query(name))
	if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		q.check(name, fault.New(fault.Invalid, "must be text without NUL"))
	}
	return value
}

// key returns the key of the object that the request is about, as far as it is known.
func (q *request) key(ctx context.Context) string {
	if q.named == "" && q.find != nil {
		q.named = q.find(ctx)
	}
	if q.named != "" {
		return q.named
	}
	var keys []string
	for _, name := range q.Route().Params {
		keys = append(keys, q.param(name))
	}
	return strings.Join(slices.DeleteFunc(keys, func(k string) bool { return k == "" }), " ")
}
