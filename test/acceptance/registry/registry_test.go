package registry

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// registryCheck checks an endpoint or a rule of the registry below a namespace of its own.
type registryCheck struct {
	name     string
	check    func(*testing.T, *registry)
	reviewed bool // whether review can change what the check sees
}

func registryChecks() []registryCheck {
	return []registryCheck{
		{"publication", checkPublication, true},
		{"documents", checkDocuments, true},
		{"paths", checkPaths, false},
		{"HTTP", checkHTTP, false},
		{"listing", checkListing, false},
		{"paging", checkPaging, false},
		{"large answers", checkLarge, false},
		{"latest", checkLatest, true},
		{"replace", checkReplace, true},
		{"delete", checkDelete, true},
		{"status", checkStatus, true},
		{"owner", checkOwner, true},
		{"status of all", checkStatusAll, true},
		{"remote URLs", checkRemotes, true},
		{"invisible characters", checkInvisible, false},
		{"preconditions", checkPreconditions, true},
		{"preconditions at once", checkPreconditionsAtOnce, true},
		{"writers", checkWriters, true},
		{"audit", checkAudit, true},
	}
}

// TestRegistry runs all checks with one service.
func TestRegistry(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		r := openRegistry(t, e)
		for _, c := range registryChecks() {
			t.Run(c.name, func(t *testing.T) { c.check(t, r) })
		}
	})
}

// TestRegistryWithReview runs the checks of writes with review and a rule that approves everything
// (contract C-15).
func TestRegistryWithReview(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		r := openRegistry(t, e, "REGISTRY_REVIEW=on")
		e.RunCommand(t, "", "review", "rule", "add", "--pattern", "*", "--when", "any")
		for _, c := range registryChecks() {
			if c.reviewed {
				t.Run(c.name, func(t *testing.T) { c.check(t, r) })
			}
		}
	})
}

// registry is a running service with a person who may write everything.
type registry struct {
	*fixture.Environment
	s      *fixture.Service
	writer *fixture.Person
}

func openRegistry(t *testing.T, e *fixture.Environment, environ ...string) *registry {
	t.Helper()
	s := e.Start(t, append(append(fixture.RegistrySettings(), "REMOTE_URL_UNIQUE=true"), environ...)...)
	return &registry{e, s, e.NewWriter(t, s, "writer@example.com", "publish *", "edit *")}
}

// get reads a path below /v0.1.
func (r *registry) get(t *testing.T, path string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, http.MethodGet, r.s.API+"/v0.1"+path, nil)
}

// list reads a listing. It fails the test when the response is not a listing.
func (r *registry) list(t *testing.T, path string) fixture.ServerPage {
	t.Helper()
	var l fixture.ServerPage
	a := r.get(t, path).WantStatus(t, http.StatusOK)
	a.Decode(t, &l)
	if l.Servers == nil || l.Metadata.Count == nil || *l.Metadata.Count != len(l.Servers) {
		t.Fatalf("listing is %s, want an array and its count", a.Body)
	}
	return l
}

// send writes as the person who may write everything.
func (r *registry) send(t *testing.T, method, path string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, r.s.API+"/v0.1"+path, body, r.writer.Bearer()...)
}

// write does what send does, and fails the test unless the response is a version.
func (r *registry) write(t *testing.T, method, path string, body any) fixture.ServerRecord {
	t.Helper()
	return decodeRecord(t, r.send(t, method, path, body))
}

// publish publishes versions of a server, oldest first.
func (r *registry) publish(t *testing.T, name string, versions ...string) {
	t.Helper()
	for _, v := range versions {
		r.write(t, "POST", "/publish", fixture.NewServerDocument(name, v))
	}
}

// setStatus changes the status of a version.
func (r *registry) setStatus(t *testing.T, name, version, status string) fixture.ServerRecord {
	t.Helper()
	return r.write(t, "PATCH", fixture.ServerPath(name, version)+"/status", map[string]string{"status": status})
}

// wantFault checks the status and that the error message contains the words.
func wantFault(t *testing.T, a apiclient.Response, status int, words ...string) {
	t.Helper()
	sentence := apiclient.WantRegistryError(t, a.WantStatus(t, status))
	for _, w := range words {
		if !strings.Contains(sentence, w) {
			t.Errorf("%d says %q, want %q in it", status, sentence, w)
		}
	}
}

var sixDecimals = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// decodeRecord decodes a ServerResponse. It fails the test when the response has another form.
func decodeRecord(t *testing.T, a apiclient.Response) fixture.ServerRecord {
	t.Helper()
	var r fixture.ServerRecord
	a.WantStatus(t, http.StatusOK).Decode(t, &r)
	var raw map[string]json.RawMessage
	a.Decode(t, &raw)
	meta, ok := r.Meta[fixture.OfficialKey]
	if len(raw) != 2 || len(r.Meta) != 1 || !ok || r.Server == nil {
		t.Fatalf("answer is %s, want server and _meta alone", a.Body)
	}
	for _, time := range []string{meta.PublishedAt, meta.UpdatedAt, meta.StatusChangedAt} {
		if !sixDecimals.MatchString(time) {
			t.Errorf("time %q has not six decimals: %s", time, a.Body)
		}
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type is %q", got)
	}
	return r
}

// equalJSON reports whether two values are equal as JSON.
func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	return reflect.DeepEqual(roundTripJSON(t, a), roundTripJSON(t, b))
}

func roundTripJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	must.Succeed(t, err)
	var decoded any
	must.Succeed(t, json.Unmarshal(text, &decoded))
	return decoded
}
