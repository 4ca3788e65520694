package registryapi_test

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

// quarantineStub records the calls of the handlers and returns fixed results.
type quarantineStub struct {
	who    authority.Caller
	draft  quarantining.Draft
	query  quarantining.Query
	target quarantining.Target
	page   quarantining.Page
	err    error // of all calls
}

func (s *quarantineStub) Add(_ context.Context, who authority.Caller, d quarantining.Draft) (registry.Quarantined, error) {
	s.who, s.draft = who, d
	if err := cmp.Or(s.err, d.Malformed); err != nil {
		return registry.Quarantined{}, err
	}
	return s.page.Entries[0], nil
}

func (s *quarantineStub) List(_ context.Context, who authority.Caller, q quarantining.Query) (quarantining.Page, error) {
	s.who, s.query = who, quarantining.Query{Cursor: strings.Clone(q.Cursor), Limit: strings.Clone(q.Limit)}
	return s.page, s.err
}

func (s *quarantineStub) Release(_ context.Context, who authority.Caller, t quarantining.Target) error {
	s.who, s.target = who, t
	return cmp.Or(s.err, t.Malformed)
}

// newEntry returns an entry of a version, or of a server for an empty version.
func newEntry(t *testing.T, version string, by registry.Holder) registry.Quarantined {
	t.Helper()
	name, err := registry.ParseName("com.example/a")
	if err != nil {
		t.Fatal(err)
	}
	q := registry.Quarantined{Name: name, Reason: `it "sends" mail`, Since: now, By: by}
	if version != "" {
		if q.Version, err = registry.ParseVersion(version); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

const (
	shownServer  = `{"serverName":"com.example/a","version":null,"reason":"it \"sends\" mail","since":"2027-01-15T08:00:00.123456Z","by":"operator"}`
	shownVersion = `{"serverName":"com.example/a","version":"1.0.0","reason":"it \"sends\" mail","since":"2027-01-15T08:00:00.123456Z","by":"u1"}`
)

func quarantinePaths() [2]string {
	return [2]string{"/v0.1/x/dev.tollgate/quarantine", "/v0/x/dev.tollgate/quarantine"}
}

func TestQuarantine(t *testing.T) {
	s := &quarantineStub{}
	url := servePart(t, registryapi.NewQuarantine(authoritytest.Callers{}, s))
	for _, path := range quarantinePaths() {
		s.page = quarantining.Page{Entries: []registry.Quarantined{newEntry(t, "1.0.0", "u1")}}
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/a","version":"1.0.0","reason":"r","other":1}`, 200, shownVersion)
		want := quarantining.Draft{Target: quarantining.Target{ServerName: "com.example/a", Version: "1.0.0"}, Reason: "r"}
		if s.draft != want || s.who != tokenHolder() {
			t.Errorf("%s: the draft is %+v of %+v", path, s.draft, s.who)
		}
		s.page.Entries[0] = newEntry(t, "", "")
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/a","version":null}`, 200, shownServer)
		if s.draft.Version != "" || s.draft.Reason != "" {
			t.Errorf("%s: the draft is %+v", path, s.draft)
		}
	}
}

func TestWrongQuarantineBodies(t *testing.T) {
	s := &quarantineStub{}
	url := servePart(t, registryapi.NewQuarantine(authoritytest.Callers{}, s)) + quarantinePaths()[0]
	for body, message := range map[string]string{
		``:                                       "body is empty; it must be a JSON object",
		`[]`:                                     "body must be a JSON object",
		`{}`:                                     "serverName is missing",
		`{"serverName":1}`:                       "serverName must be a string without NUL",
		`{"serverName":"a/b","version":1}`:       "version must be a string without NUL",
		`{"serverName":"a/b","version":""}`:      "version must not be empty",
		`{"serverName":"a/b","reason":["r"]}`:    "reason must be a string without NUL",
		`{"serverName":"a/b","reason":"\u0000"}`: "reason must be a string without NUL",
		`{"serverName":"a/b","reason":"","reason":""}`: "reason occurs twice",
	} {
		expectUncached(t, http.MethodPost, url, body, 400, `{"error":"`+message+`"}`)
	}
	s.err = fault.New(fault.Unauthenticated, "sign in")
	expectUncached(t, http.MethodPost, url, ``, 401, `{"error":"sign in"}`)
}

func TestListedQuarantine(t *testing.T) {
	s := &quarantineStub{}
	url := servePart(t, registryapi.NewQuarantine(authoritytest.Callers{}, s))
	for _, path := range quarantinePaths() {
		s.page = quarantining.Page{}
		expectUncached(t, http.MethodGet, url+path, "", 200, `{"quarantined":[],"metadata":{"count":0}}`)
		s.page = quarantining.Page{Entries: []registry.Quarantined{newEntry(t, "", ""), newEntry(t, "1.0.0", "u1")}, NextCursor: "next"}
		expectUncached(t, http.MethodGet, url+path+"?limit=2&cursor=c", "", 200,
			`{"quarantined":[`+shownServer+`,`+shownVersion+`],"metadata":{"nextCursor":"next","count":2}}`)
		if s.query != (quarantining.Query{Cursor: "c", Limit: "2"}) {
			t.Errorf("the query is %+v", s.query)
		}
	}
}

func TestReleasedQuarantine(t *testing.T) {
	s := &quarantineStub{}
	url := servePart(t, registryapi.NewQuarantine(authoritytest.Callers{}, s))
	for _, path := range quarantinePaths() {
		expectUncached(t, http.MethodDelete, url+path+"?serverName=com.example%2Fa&version=1.0.0%2Bb", "", 204, "")
		if s.target != (quarantining.Target{ServerName: "com.example/a", Version: "1.0.0+b"}) {
			t.Errorf("the target is %+v", s.target)
		}
		expectUncached(t, http.MethodDelete, url+path+"?serverName=com.example/a&version=", "", 204, "")
		if s.target != (quarantining.Target{ServerName: "com.example/a"}) {
			t.Errorf("the target is %+v", s.target)
		}
		expectUncached(t, http.MethodDelete, url+path, "", 400, `{"error":"serverName is missing"}`)
		expectUncached(t, http.MethodDelete, url+path+"?serverName=%00", "", 400, `{"error":"serverName must be text without NUL"}`)
		expectUncached(t, http.MethodDelete, url+path+"?serverName=a&version=%FF", "", 400, `{"error":"version must be text without NUL"}`)
	}
	for kind, status := range map[fault.Kind]int{fault.Unauthenticated: 401, fault.Forbidden: 403, fault.NotFound: 404, fault.Conflict: 409, fault.Unavailable: 503} {
		s.err = fault.New(kind, "no")
		expectUncached(t, http.MethodDelete, url+quarantinePaths()[0]+"?serverName=a", "", status, `{"error":"no"}`)
	}
}

func TestOwnedPathsOfQuarantine(t *testing.T) {
	t.Parallel()
	a := registryapi.NewQuarantine(nil, nil)
	for path, want := range map[string]bool{
		"/v0.1/x/dev.tollgate/quarantine": true, "/v0/x/dev.tollgate/quarantine": true, "/v0/x/dev.tollgate/quarantine/x": true,
		"/v0.1/x/dev.tollgate/quarantines": false, "/x/dev.tollgate/quarantine": false, "/v0.1/servers": false,
	} {
		if got := a.Owns(path); got != want {
			t.Errorf("Owns(%s) = %v, want %v", path, got, want)
		}
	}
}
