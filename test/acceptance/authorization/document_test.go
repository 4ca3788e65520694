package authorization

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/testcert"
)

// document is the document of a client at a host of its own, which may change.
type document struct {
	url     string
	content atomic.Pointer[object]
	reads   atomic.Int64
}

// trusted is the authority that this process trusts: a process reads the file of its authorities once.
var trusted struct {
	once      sync.Once
	authority *testcert.Certificate
}

func startDocument(t *testing.T) *document {
	t.Helper()
	trusted.once.Do(func() {
		trusted.authority = testcert.NewAuthority(t)
		must.Succeed(t, os.WriteFile(authorities, trusted.authority.CertPEM, 0o600))
	})
	d := new(document)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d.reads.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(*d.content.Load()) // the service has gone
	}))
	web.TLS = &tls.Config{Certificates: []tls.Certificate{trusted.authority.Issue(t, "localhost").Pair()}, MinVersion: tls.VersionTLS12}
	web.StartTLS()
	t.Cleanup(web.Close)
	d.url = strings.Replace(web.URL, "127.0.0.1", "localhost", 1) + "/editor.json"
	d.set(nil)
	return d
}

// set changes members of the document.
func (d *document) set(changes object) {
	all := object{"client_id": d.url, "client_name": "The Cloud Editor", "redirect_uris": []string{callback}}
	for name, value := range changes {
		all[name] = value
	}
	d.content.Store(&all)
}

// host returns the host of the document.
func (d *document) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(d.url, "https://"), "/editor.json")
}

// admitted returns the settings with which the document counts.
func (d *document) admitted() []string {
	return []string{"OAUTH_CLIENT_HOSTS=" + d.host(), "OAUTH_CLIENT_NETWORKS=127.0.0.0/8"}
}

// TestDocuments checks a client that is known by its document alone: whose documents count, that another document is one to
// agree to again, and which documents are refused. An instance that starts later has no copy.
func TestDocuments(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		d := startDocument(t)
		host, admitted := d.host(), d.admitted()
		s := startSite(t, e, admitted...)
		b := s.newBrowser(t)
		b.SignIn(ada, fixture.Password)
		s.begin(b, s.request("client_id", d.url))
		b.WantText("The Cloud Editor", host, "127.0.0.1", "on your own computer").WantNoText("Verify with a code").Press("Allow", http.StatusOK)
		status, _, got := post(t, s.Service, "/oauth2/token", exchange(wayBack(b).Get("code"), "client_id", d.url))
		if status != http.StatusOK {
			t.Fatalf("the token endpoint: %d %+v", status, got)
		}
		if s.begin(b, s.request("client_id", d.url)); wayBack(b).Get("code") == "" || d.reads.Load() != 1 {
			t.Errorf("the second request reads the document again, or asks again: %d reads, %s", d.reads.Load(), b.Text())
		}

		d.set(object{"redirect_uris": []string{callback, "https://evil.example/callback"}})
		later := s.later(t, admitted...)
		b.Base = strings.Replace(later.API, "127.0.0.1", "localhost", 1)
		if s.begin(b, s.request("client_id", d.url)); !strings.Contains(b.Text(), "Allow") {
			t.Errorf("another document needs no consent: %d %s", b.Page.Status, b.Text())
		}
		for name, change := range map[string]object{
			"of another client":    {"client_id": d.url + "x"},
			"with a secret":        {"client_secret": "secret"},
			"with a shared secret": {"token_endpoint_auth_method": "client_secret_basic"},
			"without a name":       {"client_name": ""},
		} {
			d.set(change)
			b.Base = strings.Replace(s.later(t, admitted...).API, "127.0.0.1", "localhost", 1)
			if status := s.begin(b, s.request("client_id", d.url)); status != http.StatusBadRequest {
				t.Errorf("a document %s: %d %s", name, status, b.Text())
			}
		}
		d.set(nil)
		b.Base = strings.Replace(s.later(t, "OAUTH_CLIENT_HOSTS="+host).API, "127.0.0.1", "localhost", 1)
		reads := d.reads.Load()
		if status := s.begin(b, s.request("client_id", d.url)); status != http.StatusBadRequest || d.reads.Load() != reads {
			t.Errorf("a document at a private address: %d %s", status, b.Text())
		}
		if log := s.manage(t, "GET", "/audit?type=AUTHORIZATION", nil); !strings.Contains(string(log.Body), `"document"`) {
			t.Errorf("no event of a document that was refused: %s", log.Body)
		}
	})
}

// later starts an instance, which has read no document yet.
func (s *site) later(t *testing.T, more ...string) *fixture.Service {
	t.Helper()
	return s.environment.Start(t, settings(s.origin, more...)...)
}
