package tokens

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	admin       = "/admin/v1"
	me          = admin + "/me"
	myTokens    = me + "/tokens"
	services    = admin + "/service-accounts"
	ci          = services + "/ci"
	ciTokens    = ci + "/tokens"
	unknownID   = "6b1d5f0a-2c3e-4f7a-9d6b-0e8f7a1c2b3d"
	neverMade   = "tgp_000000000000000000000000000000000000000000017jAMh"
	wrongSum    = "tgp_000000000000000000000000000000000000000000017jAMi"
	scopeHeader = `Bearer error="insufficient_scope"`
)

// token is a token as the API shows it.
type token struct {
	ID, Name, Prefix, CreatedAt, ExpiresAt, Token string
	Scopes, Networks                              []string
	LastUsedAt, LastUsedFrom                      *string
}

// site is a service with an operator, and every secret that it has given.
type site struct {
	*fixture.Service
	environment *fixture.Environment
	operator    *fixture.Person
	secrets     []string
}

func startSite(t *testing.T, e *fixture.Environment, settings ...string) *site {
	t.Helper()
	s := &site{Service: e.Start(t, append(fixture.RegistrySettings(), settings...)...), environment: e}
	s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate ", "publish *", "edit *", "review *")
	return s
}

// bearer returns the header with a token.
func bearer(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

func (s *site) call(t *testing.T, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.API+path, body, header...)
}

// make makes a token below a path, and returns it.
func (s *site) make(t *testing.T, path string, header []string, scopes ...string) token {
	t.Helper()
	var made token
	s.call(t, "POST", path, map[string]any{"name": "t", "scopes": scopes}, header...).
		WantStatus(t, http.StatusCreated).Decode(t, &made)
	if len(made.Token) != 53 || !strings.HasPrefix(made.Token, made.Prefix) || len(made.Prefix) != 12 {
		t.Fatalf("the token is %+v", made)
	}
	s.secrets = append(s.secrets, made.Token)
	return made
}

// makeService makes the service account ci with grants.
func (s *site) makeService(t *testing.T, grants ...string) {
	t.Helper()
	s.call(t, "PUT", ci, map[string]any{"description": "builds"}, s.operator.Bearer()...)
	for _, g := range grants {
		action, resource, _ := strings.Cut(g, " ")
		s.environment.RunCommand(t, "", "grant", "add", "--service", "ci", "--action", action, "--resource", resource)
	}
}

// wantInsufficient checks the refusal of a token without one of some scopes (RFC 6750).
func wantInsufficient(t *testing.T, what string, a apiclient.Response, scopes ...string) {
	t.Helper()
	want := scopeHeader + `, scope="` + strings.Join(scopes, " ") + `"`
	if a.Status != http.StatusForbidden || a.Header.Get("WWW-Authenticate") != want {
		t.Errorf("%s: %d %q %s, want 403 %s", what, a.Status, a.Header.Get("WWW-Authenticate"), a.Body, want)
	}
}

// wantNoSecrets checks that no token is in the log of the service, in the audit log or in a list.
func (s *site) wantNoSecrets(t *testing.T, lists ...apiclient.Response) {
	t.Helper()
	texts := []string{s.Process.Log()}
	for _, list := range lists {
		texts = append(texts, string(list.Body))
	}
	rows, err := s.environment.OpenDatabase(t).QueryContext(t.Context(), "SELECT details FROM audit_events")
	must.Succeed(t, err)
	defer func() { _ = rows.Close() }() // all rows are read, or the test has failed
	for rows.Next() {
		var details string
		must.Succeed(t, rows.Scan(&details))
		texts = append(texts, details)
	}
	must.Succeed(t, rows.Err())
	for _, text := range texts {
		for _, secret := range s.secrets {
			if strings.Contains(text, secret[12:]) {
				t.Errorf("the token %s… was written: %s", secret[:12], text)
			}
		}
	}
}
