package administration

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestManagedByCommand checks that commands at a service change what a file manages only with
// --managed.
func TestManagedByCommand(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	boss := e.NewWriter(t, s, "boss@example.com", "operate *")
	e.NewPerson(t, "other@example.com")
	file := filepath.Join(t.TempDir(), "state.yaml")
	fixture.WriteFile(t, file, `apiVersion: tollgate.dev/v1
kind: State
views: [{name: data}]
reviewRules: [{pattern: com.example/*, when: any}]
mirrors: [{name: public, url: "https://registry.invalid"}]
grants: [{person: other@example.com, action: edit, resource: com.example/*}]
webhooks: [{url: "https://example.com/hook", events: [status],
	secret: 64-random-characters-that-only-the-receiver-knows}]
policies: [{method: dns, domain: example.com, pattern: com.example/*}]
serviceAccounts: [{name: ci}]
providers: [{name: acme, issuer: "https://login.acme.example", clientId: tollgate}]
accessRules: [{name: readers, order: 1, effect: allow, subjects: [everyone], servers: [com.example/*]}]
`)
	e.Environ = []string{"TOLLGATE_TOKEN=" + boss.AccessToken, "TOLLGATE_SERVER=" + s.API}
	e.RunCommand(t, "", "apply", "-f", file, "--owner", "platform")
	idOf := func(list ...string) string { return varying.FindString(e.RunCommand(t, "", list...)) }
	for _, args := range []string{
		"view remove data", "mirror remove public", "review rule remove " + idOf("review", "rule", "list"),
		"webhook remove " + idOf("webhook", "list"), "publisher remove " + idOf("publisher", "list"),
		"provider remove acme",
		"access rule set readers --effect deny --subject everyone --server com.example/*", "access rule remove readers",
		"service-account set ci --description x", "service-account disable ci", "service-account remove ci",
		"grant remove --email other@example.com --action edit --resource com.example/*",
	} {
		_, stderr, code := e.TryCommand(t, "", strings.Fields(args)...)
		if code != 1 || !strings.Contains(stderr, "platform") || !strings.Contains(stderr, "--managed") ||
			strings.Contains(stderr, "force") {
			t.Errorf("%s: exit code %d\n%s", args, code, stderr)
		}
		if _, stderr, code := e.TryCommand(t, "", strings.Fields(args+" --managed")...); code != 0 {
			t.Errorf("%s --managed: exit code %d\n%s", args, code, stderr)
		}
	}
}

// TestOwnTokens checks the commands about one's own tokens: the token that one prints is good,
// until another removes it.
func TestOwnTokens(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	anna := e.NewWriter(t, s, "anna@example.com")
	e.Environ = []string{"TOLLGATE_TOKEN=" + anna.AccessToken, "TOLLGATE_SERVER=" + s.API}
	token := strings.TrimSuffix(e.RunCommand(t, "", "token", "create", "--name", "mine", "--scope", "registry:read",
		"--expires-at", time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339)), "\n")
	status := func() int {
		return apiclient.Call(t, "GET", s.API+"/admin/v1/me", nil, "Authorization", "Bearer "+token).Status
	}
	if status() != http.StatusOK {
		t.Errorf("the token %q is refused", token)
	}
	var list []struct{ ID, Name, Prefix string }
	e.ReadCommand(t, &list, "token", "list")
	if len(list) != 1 || list[0].Name != "mine" || list[0].Prefix != token[:12] {
		t.Fatalf("the list is %+v", list)
	}
	if names := e.RunCommand(t, "", "__complete", "token", "remove", ""); !strings.Contains(names, list[0].ID) {
		t.Errorf("the completion is %s", names)
	}
	e.RunCommand(t, "", "token", "remove", list[0].ID)
	if status() != http.StatusUnauthorized {
		t.Error("the removed token is accepted")
	}
}

// TestInviteAgain checks that a person is invited again on the database and at the service, each
// time by another link.
func TestInviteAgain(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	boss := e.NewWriter(t, s, "boss@example.com", "operate *")
	local, far := slices.Clone(e.Environ), []string{"TOLLGATE_TOKEN=" + boss.AccessToken, "TOLLGATE_SERVER=" + s.API}
	e.Environ = far
	e.RunCommand(t, "", "user", "add", "--email", "new@example.com", "--name", "New")
	links := map[string]bool{}
	for _, environ := range [][]string{local, far} {
		e.Environ = environ
		link := varying.FindString(e.RunCommand(t, "", "user", "invite-again", "--email", "new@example.com"))
		if link == "" || links[link] {
			t.Errorf("the invitation %q is not new", link)
		}
		links[link] = true
	}
}

// varying is what differs between two runs of the same command.
var varying = regexp.MustCompile(`tg[ps]_[0-9A-Za-z]{8,}|[0-9a-f]{8}-[0-9a-f-]{27}|20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|[A-Za-z0-9_+/=-]{30,}|operator|boss@example.com`)

// TestExitCodesAtService checks the exit codes of commands that call a service.
func TestExitCodesAtService(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	boss := e.NewWriter(t, s, "boss@example.com", "operate *")
	low := e.NewPerson(t, "low@example.com", "operate *")
	low.Login(t, s)
	home := []string{"HOME=" + t.TempDir()}
	e.Environ = []string{"TOLLGATE_TOKEN=" + boss.AccessToken}
	token := strings.TrimSpace(e.RunCommand(t, "", "token", "create", "--name", "t", "--scope", "admin:read",
		"--server", s.API))
	withToken := func(token string) []string { return append(slices.Clone(home), "TOLLGATE_TOKEN="+token) }
	for _, c := range []struct {
		name, args string
		environ    []string
		want       int
	}{
		{"done", "view list --server " + s.API, withToken(boss.AccessToken), 0},
		{"address of the environment", "view list", append(withToken(boss.AccessToken), "TOLLGATE_SERVER="+s.API), 0},
		{"refused", "view remove no --server " + s.API, withToken(boss.AccessToken), 1},
		{"unknown flag", "view list --no --server " + s.API, withToken(boss.AccessToken), 2},
		{"missing argument", "view remove --server " + s.API, withToken(boss.AccessToken), 2},
		{"no address", "view list --server nothing", withToken(boss.AccessToken), 2},
		{"set-password", "user set-password --email low@example.com --server " + s.API, home, 2},
		{"import", "registry import x.json --server " + s.API, home, 2},
		{"migrate", "migrate --server " + s.API, home, 2},
		{"migrate status", "migrate status --server " + s.API, home, 2},
		{"backup", "backup x --server " + s.API, home, 2},
		{"export", "registry export --server " + s.API, home, 2},
		{"enrol-mfa", "user enrol-mfa --email low@example.com --server " + s.API, home, 2},
		{"mirror sync --full", "mirror sync x --full --server " + s.API, withToken(boss.AccessToken), 2},
		{"forced lock", "user lock --email low@example.com --force --server " + s.API, withToken(boss.AccessToken), 2},
		{"grant without holder", "grant add --action operate --server " + s.API, withToken(boss.AccessToken), 2},
		{"grant with two holders", "grant add --email low@example.com --service ci --action operate --server " + s.API,
			withToken(boss.AccessToken), 2},
		{"one session", "session end --email low@example.com 00000000-0000-4000-8000-000000000000 --server " + s.API,
			withToken(boss.AccessToken), 2},
		{"own tokens on the database", "token list", home, 2},
		{"own token without a scope", "token create --name t --server " + s.API, withToken(boss.AccessToken), 2},
		{"own tokens by a token", "token list --server " + s.API, withToken(token), 1},
		{"workload that is no object", "service-account set ci --workload x --server " + s.API, home, 2},
		{"audit of no person", "audit search --user nobody --server " + s.API, withToken(boss.AccessToken), 2},
		{"not signed in", "view list --server " + s.API, home, 3},
		{"invalid token", "view list --server " + s.API, withToken("tgp_no"), 3},
		{"low trust", "view list --server " + s.API, withToken(low.AccessToken), 3},
		{"away", "view list --server http://127.0.0.1:1", withToken("tgp_no"), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.Environ = c.environ
			out, stderr, code := e.TryCommand(t, "", strings.Fields(c.args)...)
			if code != c.want || code != 0 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.want, out, stderr)
			}
		})
	}
}

// TestTrustedCertificate checks that a service with a certificate of its own needs --ca-cert.
func TestTrustedCertificate(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"views":[],"metadata":{"count":0}}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	good, empty := filepath.Join(dir, "good.pem"), filepath.Join(dir, "empty.pem")
	writePEM(t, good, s.Certificate())
	fixture.WriteFile(t, empty, "nothing")
	e.Environ = []string{"HOME=" + dir, "TOLLGATE_TOKEN=tgp_x", "TOLLGATE_SERVER=" + s.URL}
	for args, want := range map[string]int{
		"view list": 4, "view list --ca-cert " + good: 0, "view list --ca-cert " + empty: 2,
		"view list --ca-cert /no/such/file": 2,
	} {
		if out, stderr, code := e.TryCommand(t, "", strings.Fields(args)...); code != want {
			t.Errorf("%s: exit code %d, want %d\n%s%s", args, code, want, out, stderr)
		}
	}
}

func writePEM(t *testing.T, path string, c *x509.Certificate) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	must.Succeed(t, os.WriteFile(path, text, 0o600))
}
