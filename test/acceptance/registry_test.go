package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestRegistry looks at every endpoint and rule of the registry. All checks of
// an environment share one service; each writes below a namespace of its own.
func TestRegistry(t *testing.T) {
	checks := []struct {
		name  string
		check func(*testing.T, *registry)
	}{
		{"publication", checkPublication},
		{"paths", checkPaths},
		{"HTTP", checkHTTP},
		{"parameters", checkParameters},
		{"filters", checkFilters},
		{"cursors", checkCursors},
		{"paging", checkPaging},
		{"large answers", checkLarge},
		{"order of versions", checkOrder},
		{"latest", checkLatest},
		{"replace", checkReplace},
		{"delete", checkDelete},
		{"status", checkStatus},
		{"status of all", checkStatusAll},
		{"remote URLs", checkRemotes},
		{"order of checks", checkOrderOfChecks},
		{"bad documents", checkBadDocuments},
		{"good documents", checkGoodDocuments},
		{"validate", checkValidate},
		{"invisible characters", checkInvisible},
		{"preconditions", checkPreconditions},
		{"preconditions at once", checkPreconditionsAtOnce},
		{"grants", checkGrants},
		{"patterns", checkPatterns},
		{"trust", checkTrust},
		{"audit", checkAudit},
	}
	each(t, func(t *testing.T, e *environment) {
		r := openRegistry(t, e)
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) { c.check(t, r) })
		}
	})
}

// registry is a running service with somebody who may write everything.
type registry struct {
	*environment
	s      *service
	writer *person
}

// registryEnviron leaves out of these tests what has its own: packages are
// not asked for, and nobody is too fast.
func registryEnviron() []string {
	return []string{"PACKAGE_CHECKS=off", "REGISTRY_RATE_LIMIT=0", "API_RATE_LIMIT=0"}
}

func openRegistry(t *testing.T, e *environment) *registry {
	t.Helper()
	s := e.start(t, registryEnviron()...)
	return &registry{e, s, e.writerFor(t, s, "writer@example.com", "publish *", "edit *")}
}

// writerFor adds a person with grants, signed in at full trust.
func (e *environment) writerFor(t *testing.T, s *service, email string, grants ...string) *person {
	t.Helper()
	p := e.newPerson(t, email, grants...)
	p.login(t, s)
	p.stepUp(t, e, s)
	return p
}

// get reads a path below /v0.1.
func (r *registry) get(t *testing.T, path string) answer {
	t.Helper()
	return call(t, http.MethodGet, r.s.api+"/v0.1"+path, nil)
}

// list reads a listing, which must be one.
func (r *registry) list(t *testing.T, path string) list {
	t.Helper()
	var l list
	a := r.get(t, path).want(t, http.StatusOK)
	a.decode(t, &l)
	if l.Servers == nil || l.Metadata.Count == nil || *l.Metadata.Count != len(l.Servers) {
		t.Fatalf("listing is %s, want an array and its count", a.body)
	}
	return l
}

// send writes as the person who may write everything.
func (r *registry) send(t *testing.T, method, path string, body any) answer {
	t.Helper()
	return call(t, method, r.s.api+"/v0.1"+path, body, r.writer.bearer()...)
}

// write is send for what must succeed with a version.
func (r *registry) write(t *testing.T, method, path string, body any) record {
	t.Helper()
	return one(t, r.send(t, method, path, body))
}

// publish publishes versions of a server, oldest first.
func (r *registry) publish(t *testing.T, name string, versions ...string) {
	t.Helper()
	for _, v := range versions {
		r.write(t, "POST", "/publish", document(name, v))
	}
}

// setStatus changes the status of a version.
func (r *registry) setStatus(t *testing.T, name, version, status string) record {
	t.Helper()
	return r.write(t, "PATCH", at(name, version)+"/status", map[string]string{"status": status})
}

// wantFault wants a status and a sentence that holds some words.
func (a answer) wantFault(t *testing.T, status int, words ...string) {
	t.Helper()
	sentence := wantError(t, a.want(t, status))
	for _, w := range words {
		if !strings.Contains(sentence, w) {
			t.Errorf("%d says %q, want %q in it", status, sentence, w)
		}
	}
}

// fails runs an operator command that must fail, and returns what it says.
func (e *environment) fails(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(built, "tollgate"), args...)
	cmd.Env = e.environ
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("tollgate %s succeeded: %s", strings.Join(args, " "), out)
	}
	return string(out)
}

// record is a ServerResponse.
type record struct {
	Server map[string]any      `json:"server"`
	Meta   map[string]standing `json:"_meta"`
}

// standing is what the registry says of a version.
type standing struct {
	Status          string  `json:"status"`
	StatusMessage   *string `json:"statusMessage"`
	StatusChangedAt string  `json:"statusChangedAt"`
	PublishedAt     string  `json:"publishedAt"`
	UpdatedAt       string  `json:"updatedAt"`
	IsLatest        bool    `json:"isLatest"`
}

// list is a ServerList.
type list struct {
	Servers  []record `json:"servers"`
	Metadata struct {
		NextCursor *string `json:"nextCursor"`
		Count      *int    `json:"count"`
	} `json:"metadata"`
}

// names returns the rows as name@version.
func (l list) names() []string {
	names := []string{}
	for _, r := range l.Servers {
		names = append(names, r.id())
	}
	return names
}

// next returns the cursor of the next page, empty on the last one.
func (l list) next() string {
	if l.Metadata.NextCursor == nil {
		return ""
	}
	return *l.Metadata.NextCursor
}

func (r record) id() string { return fmt.Sprintf("%v@%v", r.Server["name"], r.Server["version"]) }

func (r record) official() standing { return r.Meta[officialKey] }

// message returns the status message, empty when there is none.
func (s standing) message() string {
	if s.StatusMessage == nil {
		return ""
	}
	return *s.StatusMessage
}

var sixDecimals = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// one reads a ServerResponse, which must be one.
func one(t *testing.T, a answer) record {
	t.Helper()
	var r record
	a.want(t, http.StatusOK).decode(t, &r)
	var raw map[string]json.RawMessage
	a.decode(t, &raw)
	meta, ok := r.Meta[officialKey]
	if len(raw) != 2 || len(r.Meta) != 1 || !ok || r.Server == nil {
		t.Fatalf("answer is %s, want server and _meta alone", a.body)
	}
	for _, time := range []string{meta.PublishedAt, meta.UpdatedAt, meta.StatusChangedAt} {
		if !sixDecimals.MatchString(time) {
			t.Errorf("time %q has not six decimals: %s", time, a.body)
		}
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type is %q", got)
	}
	return r
}

// at returns the path of a server, or of one of its versions.
func at(name string, version ...string) string {
	path := "/servers/" + escape(name)
	if len(version) > 0 {
		path += "/versions/" + escape(version[0])
	}
	return path
}

// escape writes a value as paths and queries carry it.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// same reports whether two values are equal as JSON.
func same(t *testing.T, a, b any) bool {
	t.Helper()
	return reflect.DeepEqual(asJSON(t, a), asJSON(t, b))
}

func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// parseList is list for where a test may not end at once.
func parseList(a answer) (list, error) {
	var l list
	if a.status != http.StatusOK {
		return l, fmt.Errorf("listing answers %d %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &l); err != nil {
		return l, fmt.Errorf("listing is no JSON: %w", err)
	}
	return l, nil
}
