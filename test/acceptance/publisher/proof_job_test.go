package publisher

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// job is a CI job that gets its ID tokens as a job of GitHub Actions does.
type job struct {
	t       *testing.T
	issuer  *oidcissuer.Issuer
	environ []string

	mu     sync.Mutex
	claims map[string]any
}

const requestToken = "the-token-of-the-request"

// startJob runs the server that gives ID tokens to a job of the repository acme/tools.
func startJob(t *testing.T, issuer *oidcissuer.Issuer) *job {
	t.Helper()
	j := &job{t: t, issuer: issuer, claims: map[string]any{
		"sub": "repo:acme/tools:ref:refs/heads/main", "ref": "refs/heads/main", "repository": "acme/tools",
		"repository_id":    "1001",
		"repository_owner": "acme", "repository_owner_id": "42",
	}}
	server := httptest.NewServer(j)
	t.Cleanup(server.Close)
	j.environ = []string{
		"ACTIONS_ID_TOKEN_REQUEST_URL=" + server.URL + "/token?api-version=2.0",
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + requestToken,
	}
	return j
}

// ServeHTTP responds with a new ID token for the audience of the request.
func (j *job) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+requestToken || r.URL.Query().Get("api-version") != "2.0" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// the job sees that it is missing
	_ = json.NewEncoder(w).Encode(map[string]any{"value": j.token(r.URL.Query().Get("audience"), nil)})
}

// token returns a new ID token of the job with some claims changed.
func (j *job) token(audience string, changed map[string]any) string {
	claims := j.issuer.NewClaims(audience, time.Now())
	j.mu.Lock()
	maps.Copy(claims, j.claims)
	j.mu.Unlock()
	maps.Copy(claims, changed)
	return j.issuer.Sign(j.t, claims)
}

// set changes a claim of later tokens.
func (j *job) set(name string, value any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.claims[name] = value
}

// proveToken sends a proof by ID token.
func (p *proofSite) proveToken(t *testing.T, method, token string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "POST", p.API+"/v0/auth/"+method, map[string]string{"oidc_token": token})
}

// TestProofByGitHub publishes from a job of GitHub Actions with both clients (contract P-9, P-12).
func TestProofByGitHub(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		issuer := oidcissuer.Start(t)
		p := startProofs(t, e, "GITHUB_OIDC_ISSUER="+issuer.URL)
		j := startJob(t, issuer)
		c := newProofClient(t, j.environ...)
		login := []string{"login", "github-oidc", "--registry", p.API}
		c.wantRefusal(t, "nobody has allowed it", login...)
		p.addPolicy(t, "--method", "github-oidc", "--pattern", "com.example/*", "--action", "publish",
			"--action", "status",
			"--claim", "repository=acme/tools", "--claim", "ref=refs/heads/main")
		c.run(t, login...)
		claims := c.wantToken(t, p.Service, "github-oidc")
		if claims.Method != "github-oidc" || !strings.Contains(claims.Subject, "repo:acme/tools:ref:refs/heads/main") {
			t.Errorf("the token has %+v", claims)
		}
		checkClient(t, p, c, "com.example/weather")
		u := fixture.NewPublisher(t, &fixture.Person{})
		u.Environ = append(u.Environ, j.environ...)
		out, _ := u.Run(t, 0, "", "publish", "--oidc", "--url", p.API,
			documentFile(t, fixture.NewServerDocument("com.example/tools", "1.0.0")))
		if !strings.Contains(out, "com.example/tools  1.0.0") {
			t.Errorf("publish --oidc: %s", out)
		}
		checkToolsOfJob(t, p, u)
		checkTakenName(t, p, j, c, login)
		checkTokens(t, p, j)
	})
}

// checkToolsOfJob checks that a job records the tools of a remote of what it has published, by its ID token, and
// compares them later.
func checkToolsOfJob(t *testing.T, p *proofSite, u *fixture.Publisher) {
	t.Helper()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "forecast", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		return server
	}, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	d := fixture.NewServerDocument("com.example/tools", "1.1.0")
	d["remotes"] = []any{map[string]any{"type": "streamable-http", "url": server.URL}}
	u.Run(t, 0, "", "publish", "--oidc", "--url", p.API, documentFile(t, d))
	record := []string{"tools", "record", "com.example/tools@1.1.0", "--remote", server.URL, "--server", p.API}
	u.Run(t, 2, "", append(record, "--diff")...)
	out, _ := u.Run(t, 0, "", append(record, "--oidc")...)
	if !strings.Contains(out, "approved") {
		t.Errorf("tools record --oidc: %s", out)
	}
	u.Run(t, 0, "", append(record, "--diff")...)
}

// checkTakenName checks that a repository or an owner that has taken the name of another cannot
// publish.
func checkTakenName(t *testing.T, p *proofSite, j *job, c *proofClient, login []string) {
	t.Helper()
	for name, values := range map[string][2]string{
		"repository_id": {"2002", "1001"}, "repository_owner_id": {"43", "42"},
	} {
		j.set(name, values[0])
		c.wantRefusal(t, "the repository or its owner is not the one of the first use", login...)
		c.wantRefusal(t, "401", login...)
		j.set(name, values[1])
		c.run(t, login...)
	}
	j.set("ref", "refs/heads/other")
	c.wantRefusal(t, "nobody has allowed it", login...)
	j.set("ref", "refs/heads/main")
	var bound bool
	for _, event := range p.readEvents(t, "PUBLISHER_PROOF") {
		reason, _ := event.Details["reason"].(string)
		bound = bound ||
			!event.Success && strings.Contains(reason, "first use") && event.Details["issuer"] == j.issuer.URL
	}
	if !bound {
		t.Error("no event of the refusal")
	}
}

// checkTokens checks the refusals of ID tokens.
func checkTokens(t *testing.T, p *proofSite, j *job) {
	t.Helper()
	now := time.Now()
	for name, token := range map[string]string{
		"another audience":   j.token("https://other.example", nil),
		"another issuer":     j.token(p.API, map[string]any{"iss": "https://other.example"}),
		"an expired token":   j.token(p.API, map[string]any{"exp": now.Add(-time.Hour).Unix()}),
		"a long life":        j.token(p.API, map[string]any{"exp": now.Add(48 * time.Hour).Unix()}),
		"a later token":      j.token(p.API, map[string]any{"nbf": now.Add(time.Hour).Unix()}),
		"another signature":  j.token(p.API, nil) + "A",
		"not a token":        "a.b.c",
		"a token of another": oidcissuer.Start(t).Sign(t, j.issuer.NewClaims(p.API, now)),
	} {
		if a := p.proveToken(t, "github-oidc", token); a.Status != http.StatusUnauthorized {
			t.Errorf("%s: status %d: %s", name, a.Status, a.Body)
		}
	}
	token := j.token(p.API, nil)
	readToken(t, p.proveToken(t, "github-oidc", token))
	wantSentence(t, p.proveToken(t, "github-oidc", token).WantStatus(t, 401), "this proof was used before")
}

// TestProofByIDToken publishes with an ID token of a configured issuer.
func TestProofByIDToken(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		issuer, broken := oidcissuer.Start(t), oidcissuer.Start(t)
		broken.Fail(500)
		p := startProofs(t, e, "OIDC_ISSUERS="+issuer.URL+","+broken.URL)
		j := &job{
			t: t, issuer: issuer, claims: map[string]any{"sub": "project_path:acme/tools:ref_type:branch:ref:main"},
		}
		p.addPolicy(t, "--method", "oidc", "--issuer", issuer.URL, "--pattern", "com.example/*", "--subject",
			"project_path:acme/*:ref_type:branch:ref:main")
		u := fixture.NewPublisher(t, &fixture.Person{})
		publish := func(code int, version string, changed map[string]any) string {
			t.Helper()
			environ := u.Environ
			defer func() { u.Environ = environ }()
			u.Environ = append(environ[:len(environ):len(environ)], "TOLLGATE_ID_TOKEN="+j.token(p.API, changed))
			file := documentFile(t, fixture.NewServerDocument("com.example/weather", version))
			out, failure := u.Run(t, code, "", "publish", "--oidc", "--url", p.API, file)
			return out + failure
		}
		if out := publish(0, "1.0.0", nil); !strings.Contains(out, "com.example/weather  1.0.0") {
			t.Errorf("publish --oidc: %s", out)
		}
		for _, subject := range []string{
			"project_path:acme/tools:ref_type:branch:ref:other", "project_path:acme/a/b:ref_type:branch:ref:main",
		} {
			if out := publish(1, "1.1.0", map[string]any{"sub": subject}); !strings.Contains(out,
				"nobody has allowed it") {
				t.Errorf("%s: %s", subject, out)
			}
		}
		_, failure := u.Run(t, 1, "", "publish", "--oidc", "--url", p.API,
			documentFile(t, fixture.NewServerDocument("com.example/weather", "1.1.0")))
		if !strings.Contains(failure, "TOLLGATE_ID_TOKEN") || !strings.Contains(failure, p.API) {
			t.Errorf("publish --oidc without a token: %s", failure)
		}
		wantSentence(t, p.proveToken(t, "oidc", broken.Sign(t, broken.NewClaims(p.API, time.Now()))).WantStatus(t, 503))
		p.proveToken(t, "github-oidc", j.token(p.API, nil)).WantStatus(t, 401)
		token := j.token(p.API, nil)
		readToken(t, p.proveToken(t, "oidc", token))
		wantSentence(t, p.proveToken(t, "oidc", token).WantStatus(t, 401), "this proof was used before")
	})
}
