package registryapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

var update = flag.Bool("update", false, "write the golden files")

// writerStub records the calls of the handlers and returns fixed results.
type writerStub struct {
	who     authority.Caller
	request publishing.Request
	target  publishing.Target
	calls   []string

	records []registry.Record
	pending registry.ReviewID
	err     error
}

func (s *writerStub) recordCall(name string) ([]registry.Record, error) {
	s.calls = append(s.calls, name)
	return s.records, s.err
}

func (s *writerStub) firstRecord(name string) (registry.Record, error) {
	records, err := s.recordCall(name)
	if err != nil || len(records) == 0 {
		return registry.Record{}, err
	}
	return records[0], nil
}

func (s *writerStub) Refuse(_ publishing.Operation, err error) error { return err }

func (s *writerStub) Publish(
	_ context.Context, who authority.Caller, r publishing.Request,
) (publishing.Outcome, error) {
	s.who, s.request = who, r
	record, err := s.firstRecord("publish")
	return publishing.Outcome{Record: record, Pending: s.pending}, err
}

func (s *writerStub) Replace(
	_ context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
) (publishing.Outcome, error) {
	s.who, s.request, s.target = who, r, t
	record, err := s.firstRecord("replace")
	return publishing.Outcome{Record: record, Pending: s.pending}, err
}

func (s *writerStub) Delete(
	_ context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
) (registry.Record, error) {
	s.who, s.request, s.target = who, r, t
	return s.firstRecord("delete")
}

func (s *writerStub) SetStatus(
	_ context.Context, who authority.Caller, r publishing.Request, t publishing.Target,
) (registry.Record, error) {
	s.who, s.request, s.target = who, r, t
	return s.firstRecord("status")
}

func (s *writerStub) SetStatusAll(
	_ context.Context, who authority.Caller, r publishing.Request, name string, _ publishing.SizeCheck,
) (history.History, error) {
	s.who, s.request, s.target = who, r, publishing.Target{Name: name}
	records, err := s.recordCall("all")
	return history.History{Records: records}, err
}

// anybody finds a person also without a token.
type anybody struct{ authoritytest.Callers }

func (anybody) Identify(_ context.Context, token string, from netip.Addr) (authority.Caller, error) {
	return authoritytest.PersonFrom(cmp.Or(token, "ada"), from), nil
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

type response struct {
	status int
	header http.Header
	body   string
}

// call sends a request without changing the path. headers are names followed by values.
func call(t *testing.T, method, url, body string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must.Succeed(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	must.Succeed(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must.Succeed(t, err)
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
		must.Succeed(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	must.Succeed(t, err)
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
	must.Succeed(t, err)
	v, err := registry.ParseVersion(version)
	must.Succeed(t, err)
	at := time.Date(2026, 11, 21, 9, 30, 0, 120_000_000, time.FixedZone("", 3600))
	return registry.Record{
		Release: registry.Release{
			Name: n, Version: v, Status: registry.StatusActive, Latest: true,
			PublishedAt: at, StatusChangedAt: at, UpdatedAt: at.Add(time.Hour + time.Microsecond),
		},
		Document: []byte(
			`{"version":"` + version + `","name":"` + name + `","description":"<b> & \u00e9 é","x":1.0e2}`),
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
	servers := newServers(t, deprecatedRecord(t), record(t, "com.example/server", "1.0.0+build"),
		record(t, "com.example/server-2", "1.0.0"))
	url := serve(t, registryapi.Config{}, servers, nil)
	first := call(t, "GET", url+"/v0.1/servers?limit=2", "")
	compareGolden(t, "list.golden.json", strings.Replace(first.body, nextCursor(t, first.body), "abc_-", 1))
	if first.status != 200 || first.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", first.status, first.header)
	}
	if again := call(t, "GET", url+"/v0/servers?limit=2", ""); again.body != first.body {
		t.Errorf("the response below /v0 differs: %s", again.body)
	}
	head := call(t, "HEAD", url+"/v0.1/servers?limit=2", "")
	if head.status != 200 || head.header.Get("Content-Length") != first.header.Get("Content-Length") {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	url = serve(t, registryapi.Config{}, newServers(t), nil)
	call(t, "GET", url+"/v0.1/servers", "").expect(t, 200, `{"servers":[],"metadata":{"count":0}}`)
}

// nextCursor returns the cursor of a page of the listing.
func nextCursor(t *testing.T, body string) string {
	t.Helper()
	var list struct{ Metadata struct{ NextCursor string } }
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Metadata.NextCursor == "" {
		t.Fatalf("no cursor in %s, %v", body, err)
	}
	return list.Metadata.NextCursor
}

func TestListPassesParameters(t *testing.T) {
	servers := newServers(t, record(t, "com.example/server-1", "1.0.0"), record(t, "com.example/server-2", "1.0.0"))
	url := serve(t, registryapi.Config{}, servers, nil)
	const filters = "&search=MPLE%2Fs&updated_since=2026-01-01T00:00:00%2B01:00&version=latest&include_deleted=true&unknown=1"
	first := call(t, "GET", url+"/v0.1/servers?limit=1"+filters, "").body
	want := registrystore.Query{
		Limit: 1, Bytes: servers.query.Bytes, Search: "MPLE/s",
		UpdatedSince: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC), LatestOnly: true, Deleted: true,
	}
	if !reflect.DeepEqual(servers.query, want) {
		t.Errorf("the query is %+v, want %+v", servers.query, want)
	}
	call(t, "GET", url+"/v0.1/servers?limit=7"+filters+"&cursor="+nextCursor(t, first), "")
	want.Limit, want.AfterName, want.AfterVersion = 7, "com.example/server-1", "1.0.0"
	if !reflect.DeepEqual(servers.query, want) {
		t.Errorf("the query of the next page is %+v, want %+v", servers.query, want)
	}
	for sent, want := range map[string]int{
		"2026-01-01T00:00:00+01:00": 200, // a plus that is not escaped arrives as a space
		"2026-01-01+00:00:00Z":      400,
		"+":                         400,
	} {
		servers.query = registrystore.Query{}
		a := call(t, "GET", url+"/v0.1/servers?updated_since="+sent, "")
		if a.status != want ||
			(want == 200) != servers.query.UpdatedSince.Equal(time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)) {
			t.Errorf("updated_since=%s: %d after the query %+v", sent, a.status, servers.query)
		}
	}
	for name, rule := range map[string]string{
		"status": "active, deprecated or deleted", "package_type": "package_type", "remote": "remote",
	} {
		if a := call(t, "GET", url+"/v0.1/servers?"+name+"=%ff", ""); a.status != 400 ||
			!strings.Contains(a.body, rule) {
			t.Errorf("%s that is not text: %d %s", name, a.status, a.body)
		}
	}
	call(t, "GET", url+"/v0.1/servers", "")
	plain := servers.query
	call(t, "GET", url+"/v0.1/servers?cursor=&limit=", "")
	if !reflect.DeepEqual(servers.query, plain) {
		t.Errorf("empty parameters: %+v", servers.query)
	}
}

func TestReadsOfOneServer(t *testing.T) {
	r := record(t, "com.example/server", "1.0.0+build")
	deleted := record(t, "com.example/gone", "1.0.0")
	deleted.Status = registry.StatusDeleted
	url := serve(t, registryapi.Config{}, newServers(t, r, deleted), nil) + "/v0.1/servers/com.example"
	compareGolden(t, "version.golden.json", call(t, "GET", url+"%2Fserver/versions/1.0.0%2Bbuild", "").body)
	compareGolden(t, "version.golden.json", call(t, "GET", url+"%2fserver/versions/latest", "").body)
	compareGolden(t, "versions.golden.json", call(t, "GET", url+"%2Fserver/versions", "").body)
	for _, path := range []string{"%2Fgone/versions", "%2Fgone/versions/1.0.0"} {
		hidden, shown := call(t, "GET", url+path, "").status,
			call(t, "GET", url+path+"?include_deleted=true", "").status
		if hidden != 404 || shown != 200 {
			t.Errorf("%s of a deleted version: %d, and %d with include_deleted", path, hidden, shown)
		}
	}
}

func TestPathsThatAreNotText(t *testing.T) {
	servers := newServers(t)
	url := serve(t, registryapi.Config{}, servers, nil)
	for _, path := range []string{"/v0.1/servers/a%00b/versions", "/v0.1/servers/a%ffb/versions/1"} {
		call(t, "GET", url+path, "").expect(t, 400,
			`{"error":"serverName in the path is not valid percent-encoded UTF-8 text"}`)
	}
	call(t, "GET", url+"/v0.1/servers/a%2Fb/versions/%c3%28", "").expect(t, 400,
		`{"error":"version in the path is not valid percent-encoded UTF-8 text"}`)
	if servers.reads != 0 {
		t.Errorf("the servers were read %d times", servers.reads)
	}
	call(t, "GET", url+"/v0.1/servers/com.example/server/versions", "").expect(t, 404, `{"error":"no such path"}`)
}

// TestSlashes expects reads of paths with a repeated or trailing slash to lead to the clean path on
// this host, and nothing else to be redirected.
func TestSlashes(t *testing.T) {
	url := serve(t, registryapi.Config{}, newServers(t), nil)
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
			must.Succeed(t, err)
			got, err := client.Do(r)
			must.Succeed(t, err)
			_ = got.Body.Close()
			location, status := want, http.StatusPermanentRedirect
			if method == http.MethodPost {
				location = ""
			}
			if location == "" {
				status = http.StatusNotFound
			}
			if got.Header.Get("Location") != location || got.StatusCode != status {
				t.Errorf("%s %s: %d to %q, want %d to %q", method, path, got.StatusCode, got.Header.Get("Location"),
					status, location)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	url := serve(t, registryapi.Config{}, newServers(t), &writerStub{
		err: fault.New(fault.NotFound, "server not found"),
	})
	for _, path := range []string{
		"/v0.1/servers", "/v0/servers/a%2Fb/versions", "/v0.1/servers/a%2Fb/versions/1", "/v0.1/nothing",
	} {
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

// TestPendingHasMark checks that the response to a document that waits for review has the mark of
// its review, and no entity tag, which the next read would not have.
func TestPendingHasMark(t *testing.T) {
	s := &writerStub{records: []registry.Record{record(t, "com.example/server", "1.0.0")}, pending: "9e0c4ad4"}
	url := serve(t, registryapi.Config{}, newServers(t), s)
	for _, r := range []response{
		call(t, "POST", url+"/v0.1/publish", "{}"),
		call(t, "PUT", url+"/v0.1/servers/com.example%2Fserver/versions/1.0.0", "{}"),
	} {
		if !strings.HasSuffix(r.body, `"isLatest":true},"dev.tollgate/review":{"id":"9e0c4ad4","state":"pending"}}}`) ||
			!json.Valid([]byte(r.body)) {
			t.Errorf("the response is %s, want the mark at its end", r.body)
		}
		if tag := r.header.Get("ETag"); tag != "" {
			t.Errorf("ETag is %s, want none", tag)
		}
	}
}
