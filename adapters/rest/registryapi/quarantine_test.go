package registryapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// noActs records no acts.
type noActs struct{}

func (noActs) Record(context.Context, authority.Act) error { return nil }

// noNotices sends no notices.
type noNotices struct{ authority.ReviewNotifier }

func (noNotices) NotifyPublishers(authority.QuarantineNotice) {}

// newGrants returns the grants of the person of expectUncached for the servers below com.example.
func newGrants(t *testing.T, db *fakedb.Database, actions ...registry.Action) *fakedb.Grants {
	t.Helper()
	pattern, err := registry.ParsePattern("com.example/*")
	must.Succeed(t, err)
	grants := fakedb.NewGrants(db)
	for _, a := range actions {
		must.Succeed(t, grants.Add(t.Context(), registry.GrantRecord{Grant: registry.Grant{Holder: "t.o.k", Action: a, Pattern: pattern}}))
	}
	return grants
}

// serveQuarantine serves the quarantine of a registry with two servers, which the person of
// expectUncached may review.
func serveQuarantine(t *testing.T) (url string, q *quarantining.Service) {
	t.Helper()
	servers := newServers(t, record(t, "com.example/a", "1.0.0"), record(t, "com.example/b", "1.0.0+b"))
	db := servers.db
	q = quarantining.New(quarantining.Ports{
		Ports: change.Ports{
			Transactions: db, Writer: servers, Quarantine: fakedb.NewQuarantine(db), Acts: noActs{},
		},
		Reader: servers, Mirrors: fakedb.NewMirrors(db), Notifier: noNotices{},
		Grants: newGrants(t, db, registry.ActionReview), Cursors: page.NewSealer([]byte(strings.Repeat("k", 32))),
		Clock: clocktest.NewManual(now),
		Events: announce.New(announce.Ports{
			Webhooks: fakedb.NewWebhooks(db), Deliveries: fakedb.NewDeliveries(db), Encoder: registryapi.Encoder{},
			Clock: clocktest.NewManual(now),
		}),
	})
	return servePart(t, registryapi.NewQuarantine(authoritytest.Callers{}, registryapi.Resource{}, q)), q
}

const (
	shownServer  = `{"serverName":"com.example/a","version":null,"reason":"it \"sends\" mail","since":"2027-01-15T08:00:00.123456Z","by":"operator"}`
	shownVersion = `{"serverName":"com.example/b","version":"1.0.0+b","reason":"r","since":"2027-01-15T08:00:00.123456Z","by":"t.o.k"}`
	wholeServer  = `{"serverName":"com.example/a","version":null,"reason":"r","since":"2027-01-15T08:00:00.123456Z","by":"t.o.k"}`
)

func quarantinePaths() [2]string {
	return [2]string{"/v0.1/x/dev.tollgate/quarantine", "/v0/x/dev.tollgate/quarantine"}
}

func TestQuarantine(t *testing.T) {
	for _, path := range quarantinePaths() {
		url, _ := serveQuarantine(t)
		expectUncached(t, http.MethodPost, url+path,
			`{"serverName":"com.example/b","version":"1.0.0+b","reason":"r","other":1}`, 200, shownVersion)
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/a","version":null,"reason":"r"}`,
			200, wholeServer)
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/a"}`, 400,
			`{"error":"reason must say why, in words"}`)
		expectUncached(t, http.MethodGet, url+path, "", 200,
			`{"quarantined":[`+wholeServer+`,`+shownVersion+`],"metadata":{"count":2}}`)
	}
}

func TestWrongQuarantineBodies(t *testing.T) {
	url, _ := serveQuarantine(t)
	url += quarantinePaths()[0]
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
	call(t, http.MethodPost, url, ``).expect(t, 401, `{"error":"an access token is required"}`)
}

func TestListedQuarantine(t *testing.T) {
	for _, path := range quarantinePaths() {
		url, q := serveQuarantine(t)
		expectUncached(t, http.MethodGet, url+path, "", 200, `{"quarantined":[],"metadata":{"count":0}}`)
		_, err := q.Add(t.Context(), authority.Operator(), quarantining.Draft{
			Target: quarantining.Target{ServerName: "com.example/a"}, Reason: `it "sends" mail`,
		})
		must.Succeed(t, err)
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/b","version":"1.0.0+b","reason":"r"}`,
			200, shownVersion)
		first := call(t, http.MethodGet, url+path+"?limit=1", "", "Authorization", "Bearer t.o.k")
		next := nextCursor(t, first.body)
		if want := `{"quarantined":[` + shownServer + `],"metadata":{"nextCursor":"` + next +
			`","count":1}}`; first.body != want {
			t.Errorf("the first page is %s, want %s", first.body, want)
		}
		expectUncached(t, http.MethodGet, url+path+"?limit=2&cursor="+next, "", 200,
			`{"quarantined":[`+shownVersion+`],"metadata":{"count":1}}`)
	}
}

func TestReleasedQuarantine(t *testing.T) {
	for _, path := range quarantinePaths() {
		url, _ := serveQuarantine(t)
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/a","reason":"r"}`, 200, wholeServer)
		expectUncached(t, http.MethodPost, url+path, `{"serverName":"com.example/b","version":"1.0.0+b","reason":"r"}`,
			200, shownVersion)
		expectUncached(t, http.MethodDelete, url+path+"?serverName=com.example%2Fb&version=1.0.0%2Bb", "", 204, "")
		expectUncached(t, http.MethodGet, url+path, "", 200, `{"quarantined":[`+wholeServer+`],"metadata":{"count":1}}`)
		expectUncached(t, http.MethodDelete, url+path+"?serverName=com.example/a&version=", "", 204, "")
		expectUncached(t, http.MethodGet, url+path, "", 200, `{"quarantined":[],"metadata":{"count":0}}`)
		expectUncached(t, http.MethodDelete, url+path, "", 400, `{"error":"serverName is missing"}`)
		expectUncached(t, http.MethodDelete, url+path+"?serverName=%00", "", 400,
			`{"error":"serverName must be text without NUL"}`)
		expectUncached(t, http.MethodDelete, url+path+"?serverName=a&version=%FF", "", 400,
			`{"error":"version must be text without NUL"}`)
		for query, status := range map[string]int{"com.example/a": 404, "org.example/x": 403} {
			if a := call(t, http.MethodDelete, url+path+"?serverName="+query, "", "Authorization",
				"Bearer t.o.k"); a.status != status {
				t.Errorf("the release of %s is %d %s, want %d", query, a.status, a.body, status)
			}
		}
		if a := call(t, http.MethodDelete, url+path+"?serverName=com.example/a", ""); a.status != 401 {
			t.Errorf("the release without a token is %d %s", a.status, a.body)
		}
	}
}

func TestOwnedPathsOfQuarantine(t *testing.T) {
	t.Parallel()
	a := registryapi.NewQuarantine(nil, registryapi.Resource{}, nil)
	for path, want := range map[string]bool{
		"/v0.1/x/dev.tollgate/quarantine": true, "/v0/x/dev.tollgate/quarantine": true,
		"/v0/x/dev.tollgate/quarantine/x":  true,
		"/v0.1/x/dev.tollgate/quarantines": false, "/x/dev.tollgate/quarantine": false, "/v0.1/servers": false,
	} {
		if got := a.Owns(path); got != want {
			t.Errorf("Owns(%s) = %v, want %v", path, got, want)
		}
	}
}
