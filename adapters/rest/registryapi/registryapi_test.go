package registryapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

var update = flag.Bool("update", false, "write the golden files")

// registryStub records the calls of the handlers and returns fixed results.
type registryStub struct {
	query   browsing.Query
	request publishing.Request
	target  publishing.Target
	deleted string
	calls   []string
	off     bool // writes are off

	page    browsing.Page
	records []registry.Record
	pending review.ID
	err     error
}

func (s *registryStub) recordCall(name string) ([]registry.Record, error) {
	s.calls = append(s.calls, name)
	return s.records, s.err
}

func (s *registryStub) firstRecord(name string) (registry.Record, error) {
	records, err := s.recordCall(name)
	if err != nil || len(records) == 0 {
		return registry.Record{}, err
	}
	return records[0], nil
}

func (s *registryStub) WritesOff() bool { return s.off }

func (s *registryStub) List(_ context.Context, q browsing.Query) (browsing.Page, error) {
	s.query = q
	_, err := s.recordCall("list")
	return s.page, err
}

func (s *registryStub) Versions(_ context.Context, name, deleted string) (browsing.History, error) {
	s.target, s.deleted = publishing.Target{Name: name}, deleted
	records, err := s.recordCall("versions")
	return browsing.History{Records: records}, err
}

func (s *registryStub) Version(_ context.Context, name, version, deleted string) (registry.Record, error) {
	s.target, s.deleted = publishing.Target{Name: name, Version: version}, deleted
	return s.firstRecord("version")
}

func (s *registryStub) Publish(_ context.Context, r publishing.Request) (publishing.Outcome, error) {
	s.request = r
	record, err := s.firstRecord("publish")
	return publishing.Outcome{Record: record, Pending: s.pending}, err
}

func (s *registryStub) Replace(_ context.Context, r publishing.Request, t publishing.Target) (publishing.Outcome, error) {
	s.request, s.target = r, t
	record, err := s.firstRecord("replace")
	return publishing.Outcome{Record: record, Pending: s.pending}, err
}

func (s *registryStub) Delete(_ context.Context, r publishing.Request, t publishing.Target) (registry.Record, error) {
	s.request, s.target = r, t
	return s.firstRecord("delete")
}

func (s *registryStub) SetStatus(_ context.Context, r publishing.Request, t publishing.Target) (registry.Record, error) {
	s.request, s.target = r, t
	return s.firstRecord("status")
}

func (s *registryStub) SetStatusAll(_ context.Context, r publishing.Request, name string, _ publishing.SizeCheck) (browsing.History, error) {
	s.request, s.target = r, publishing.Target{Name: name}
	records, err := s.recordCall("all")
	return browsing.History{Records: records}, err
}

type unlimited struct{}

func (unlimited) Try(context.Context, throttle.Scope, string) (throttle.Verdict, error) {
	return throttle.Verdict{Allowed: true, Limit: 10_000, Remaining: 9_999, ResetAt: time.Unix(1_800_000_900, 0)}, nil
}
func (unlimited) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

func discardLog() *logrus.Entry {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logrus.NewEntry(logger)
}

// emptyLists has lists without servers, which skip three things.
type emptyLists struct{}

func (emptyLists) Compile(_ context.Context, o allowlist.Output, formats ...allowlist.Format) (*allowlist.Lists, error) {
	c := allowlist.NewCompiler(o, formats...)
	for range 3 {
		if err := c.Allow(registry.Record{}); err != nil { // without a document
			return nil, err
		}
	}
	return c.Compile(), nil
}

// stubViews has the view of all servers, the public view "team", and the view "inner", which needs
// the token "secret".
type stubViews struct{ reader registryapi.Reader }

func (stubViews) Enter(_ context.Context, name string, secret view.Secret) (*view.View, error) {
	switch {
	case name == view.All || name == "team":
		return &view.View{Name: view.Name(name), Access: view.Public}, nil
	case name == "broken":
		return nil, errors.New("broken")
	case name != "inner":
		return nil, fault.New(fault.NotFound, "registry view not found")
	case secret != "secret":
		return nil, fault.New(fault.Unauthenticated, "a token, please")
	}
	return &view.View{Name: "inner", Access: view.WithToken}, nil
}

func (s stubViews) Reader(view.View) registryapi.Reader { return s.reader }
func (stubViews) Listed(view.View) registryapi.Listed   { return emptyLists{} }

// serve starts a listener that has only the registry, and returns its URL.
func serve(t *testing.T, cfg registryapi.Config, r registryapi.Reader, w registryapi.Writer) string {
	t.Helper()
	api, end := registryapi.New(cfg, registryapi.Reads{Registry: r, Views: stubViews{r}}, w, readcache.Ports{})
	t.Cleanup(end)
	server := rest.New(resttest.Config(), rest.Ports{
		Parts: []rest.Part{api}, Throttle: unlimited{}, Clock: clocktest.NewManual(time.Unix(1_800_000_000, 0)), Log: discardLog(),
	})
	return resttest.Serve(t, server)
}

type response struct {
	status int
	header http.Header
	body   string
}

// call sends a request without changing the path. headers are names followed by values.
func call(t *testing.T, method, url, body string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{got.StatusCode, got.Header, string(text)}
}

// expect checks status and body.
func (a response) expect(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got %d %s, want %d %s", a.status, a.body, status, body)
	}
	if a.body != "" && a.header.Get("Content-Type") != "application/json" {
		t.Errorf("content type %q", a.header.Get("Content-Type"))
	}
	if a.header.Get("X-RateLimit-Limit") != "10000" {
		t.Errorf("headers without the limit: %v", a.header)
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Errorf("%s is not valid JSON", name)
	}
}

func record(t testing.TB, name, version string) registry.Record {
	t.Helper()
	n, err := registry.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := registry.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 9, 30, 0, 120_000_000, time.FixedZone("", 3600))
	return registry.Record{
		Release: registry.Release{
			Name: n, Version: v, Status: registry.StatusActive, Latest: true,
			PublishedAt: at, StatusChangedAt: at, UpdatedAt: at.Add(time.Hour + time.Microsecond),
		},
		Document: []byte(`{"version":"` + version + `","name":"` + name + `","description":"<b> & \u00e9 é","x":1.0e2}`),
	}
}

// deprecatedRecord returns a record with a message that JSON must escape.
func deprecatedRecord(t testing.TB) registry.Record {
	t.Helper()
	r := record(t, "com.example/old", "0.9.0")
	r.Latest, r.Status, r.StatusMessage = false, registry.StatusDeprecated, "use \"new\" \\ é\n"
	return r
}

func TestList(t *testing.T) {
	s := &registryStub{page: browsing.Page{
		Records: []registry.Record{deprecatedRecord(t), record(t, "com.example/server", "1.0.0+build")}, NextCursor: "abc_-",
	}}
	url := serve(t, registryapi.Config{}, s, s)
	first := call(t, "GET", url+"/v0.1/servers", "")
	compareGolden(t, "list.golden.json", first.body)
	if first.status != 200 || first.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", first.status, first.header)
	}
	if again := call(t, "GET", url+"/v0/servers", ""); again.body != first.body {
		t.Errorf("the response below /v0 differs: %s", again.body)
	}
	head := call(t, "HEAD", url+"/v0.1/servers", "")
	if head.status != 200 || head.header.Get("Content-Length") != first.header.Get("Content-Length") {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	s.page = browsing.Page{}
	call(t, "GET", url+"/v0.1/servers", "").expect(t, 200, `{"servers":[],"metadata":{"count":0}}`)
}

func TestListPassesParameters(t *testing.T) {
	s := &registryStub{}
	url := serve(t, registryapi.Config{}, s, s)
	call(t, "GET", url+"/v0.1/servers?cursor=c&limit=7&search=a%25b%2Fc&updated_since=2026-01-01T00:00:00%2B01:00"+
		"&version=latest&include_deleted=true&unknown=1", "")
	want := browsing.Query{
		Cursor: "c", Limit: "7", Search: "a%b/c", UpdatedSince: "2026-01-01T00:00:00+01:00", Version: "latest", IncludeDeleted: "true",
	}
	if s.query != want {
		t.Errorf("the query is %+v, want %+v", s.query, want)
	}
	for sent, want := range map[string]string{
		"2026-01-01T00:00:00+01:00": "2026-01-01T00:00:00+01:00", // a plus that is not escaped arrives as a space
		"2026-01-01+00:00:00Z":      "2026-01-01 00:00:00Z",
		"+":                         " ",
	} {
		if call(t, "GET", url+"/v0.1/servers?updated_since="+sent, ""); s.query.UpdatedSince != want {
			t.Errorf("updated_since=%s is passed as %q, want %q", sent, s.query.UpdatedSince, want)
		}
	}
	call(t, "GET", url+"/v0.1/servers?cursor=&limit=", "")
	if (s.query != browsing.Query{}) {
		t.Errorf("empty parameters: %+v", s.query)
	}
}

func TestReadsOfOneServer(t *testing.T) {
	s := &registryStub{records: []registry.Record{record(t, "com.example/server", "1.0.0+build")}}
	url := serve(t, registryapi.Config{}, s, s)
	compareGolden(t, "version.golden.json", call(t, "GET", url+"/v0.1/servers/com.example%2Fserver/versions/1.0.0%2Bbuild?include_deleted=true", "").body)
	if (s.target != publishing.Target{Name: "com.example/server", Version: "1.0.0+build"}) || s.deleted != "true" {
		t.Errorf("the target is %+v, include_deleted %q", s.target, s.deleted)
	}
	compareGolden(t, "versions.golden.json", call(t, "GET", url+"/v0.1/servers/com.example%2Fserver/versions", "").body)
	if s.target.Name != "com.example/server" || s.deleted != "" {
		t.Errorf("the target is %+v, include_deleted %q", s.target, s.deleted)
	}
	call(t, "GET", url+"/v0.1/servers/com.example%2fserver/versions/latest", "")
	if s.target.Version != "latest" || s.target.Name != "com.example/server" {
		t.Errorf("the target is %+v", s.target)
	}
}

func TestPathsThatAreNotText(t *testing.T) {
	s := &registryStub{}
	url := serve(t, registryapi.Config{}, s, s)
	for _, path := range []string{"/v0.1/servers/a%00b/versions", "/v0.1/servers/a%ffb/versions/1"} {
		call(t, "GET", url+path, "").expect(t, 400, `{"error":"serverName in the path is not valid percent-encoded UTF-8 text"}`)
	}
	call(t, "GET", url+"/v0.1/servers/a%2Fb/versions/%c3%28", "").expect(t, 400, `{"error":"version in the path is not valid percent-encoded UTF-8 text"}`)
	if len(s.calls) != 0 {
		t.Errorf("called %v", s.calls)
	}
	call(t, "GET", url+"/v0.1/servers/com.example/server/versions", "").expect(t, 404, `{"error":"no such path"}`)
}

// TestSlashes expects reads of paths with slashes too many to lead to the clean path on this host, and
// nothing else to be redirected.
func TestSlashes(t *testing.T) {
	s := &registryStub{}
	url := serve(t, registryapi.Config{}, s, s)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{
		"//v0.1/servers":                 "/v0.1/servers",
		"///v0/servers?limit=3&a=//":     "/v0/servers?limit=3&a=//",
		"/v0.1/servers/":                 "/v0.1/servers",
		"/v0.1//servers/a%2Fb/versions/": "/v0.1/servers/a%2Fb/versions",
		"//registries/x//v0.1/servers":   "/registries/x/v0.1/servers",
		"//evil.example/v0.1/servers":    "",
		"/v0.1/":                         "",
		"/v0.1/nothing":                  "",
		"//":                             "",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = got.Body.Close()
			location, status := want, http.StatusPermanentRedirect
			if method == http.MethodPost {
				location = ""
			}
			if location == "" {
				status = http.StatusNotFound
			}
			if got.Header.Get("Location") != location || got.StatusCode != status {
				t.Errorf("%s %s: %d to %q, want %d to %q", method, path, got.StatusCode, got.Header.Get("Location"), status, location)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	s := &registryStub{err: fault.New(fault.NotFound, "server not found")}
	url := serve(t, registryapi.Config{}, s, s)
	for _, path := range []string{"/v0.1/servers", "/v0/servers/a%2Fb/versions", "/v0.1/servers/a%2Fb/versions/1", "/v0.1/nothing"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			a := call(t, method, url+path, "", "Origin", "https://editor.example")
			if a.header.Get("Access-Control-Allow-Origin") != "*" ||
				a.header.Get("Access-Control-Allow-Methods") != "GET, OPTIONS" ||
				a.header.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type" {
				t.Errorf("%s %s: %d %v", method, path, a.status, a.header)
			}
			if method == "OPTIONS" && !strings.HasSuffix(path, "nothing") && (a.status != 204 || a.body != "") {
				t.Errorf("OPTIONS %s: %d %s", path, a.status, a.body)
			}
		}
	}
	a := call(t, "POST", url+"/v0.1/publish", `{}`)
	if a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("pages of other origins may read the response to a write")
	}
	if a := call(t, "OPTIONS", url+"/v0.1/publish", ""); a.status != 405 || a.header.Get("Allow") != "POST" {
		t.Errorf("OPTIONS publish: %d, Allow %q", a.status, a.header.Get("Allow"))
	}
}

// TestPendingHasMark checks that the response to a document that waits for review has the mark of its
// review, and no entity tag, which the next read would not have.
func TestPendingHasMark(t *testing.T) {
	s := &registryStub{records: []registry.Record{record(t, "com.example/server", "1.0.0")}, pending: "9e0c4ad4"}
	url := serve(t, registryapi.Config{}, s, s)
	for _, r := range []response{
		call(t, "POST", url+"/v0.1/publish", "{}"), call(t, "PUT", url+"/v0.1/servers/com.example%2Fserver/versions/1.0.0", "{}"),
	} {
		if !strings.HasSuffix(r.body, `"isLatest":true},"dev.tollgate/review":{"id":"9e0c4ad4","state":"pending"}}}`) || !json.Valid([]byte(r.body)) {
			t.Errorf("the response is %s, want the mark at its end", r.body)
		}
		if tag := r.header.Get("ETag"); tag != "" {
			t.Errorf("ETag is %s, want none", tag)
		}
	}
}
