package adminapi_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// kind is a kind of object that operators administer.
type kind struct {
	Path, List string  // of the list, and its member
	Name       string  // of an object that PUT makes; empty where POST adds one
	Body       object  // of an object
	Key        string  // the field of the name, if it is another one
	Vary       string  // the member by which added objects differ
	Change     object  // what changes it, by PUT or PATCH; nil if nothing does
	State      object  // what an object of a state in a file has other than the body
	Wrong      []wrong // bodies that are wrong
	Unread     bool    // no route reads one object
	Twice      int     // the status when the same object is added again
}

// wrong is a member that makes a body wrong, and the field that the error names. A member that is
// null is left out.
type wrong struct {
	field   string
	members object
}

// key returns the field of the name.
func (k kind) key() string { return cmp.Or(k.Key, "name") }

// UnmarshalJSON implements json.Unmarshaler.
func (w *wrong) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&w.field, &w.members})
}

// with returns a copy of an object with other members. One that is nil is left out.
func with(o, members object) object {
	changed := maps.Clone(o)
	maps.Copy(changed, members)
	maps.DeleteFunc(changed, func(_ string, value any) bool { return value == nil })
	return changed
}

// kinds returns the kinds of objects of a file in testdata, in which EVE stands for eve's id.
func (s *site) kinds(t *testing.T) (all []kind) {
	t.Helper()
	text, err := os.ReadFile("testdata/kinds.json")
	must.Succeed(t, err)
	_, eve := fixture.ReadSession(t, s.Service, s.eve)
	fixture.DecodeJSON(t, strings.ReplaceAll(string(text), "EVE", eve), &all)
	return all
}

const (
	everyName    = "com.example/*"
	githubIssuer = "https://token.actions.githubusercontent.com"
	secret       = "64-random-characters-that-only-the-receiver-knows"
)
