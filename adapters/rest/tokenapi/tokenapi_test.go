package tokenapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/adapters/rest/tokenapi"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	issuer = "https://tools.example.com"
	form   = "application/x-www-form-urlencoded"
)

var now = time.Unix(1_800_000_000, 0).UTC()

// server is a listener with this part alone, whose use cases return what a test sets.
type server struct {
	authoritytest.Callers

	url      string
	tokens   authorizing.Tokens
	found    authorizing.Introspection
	metadata authorizing.Metadata
	err      error
	request  authorizing.TokenRequest
	calls    []string
	scopes   []throttle.Scope
}

// Identify refuses the token "bad".
func (s *server) Identify(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	switch token {
	case "bad":
		return authority.Caller{}, fault.New(fault.Unauthenticated, "the token is not valid").WithCode(auth.CodeInvalidToken)
	case "away":
		return authority.Caller{}, fault.New(fault.Unavailable, "away")
	}
	return s.Callers.Identify(ctx, token, from)
}

// Try implements [throttle.Throttle].
func (s *server) Try(_ context.Context, one throttle.Scope, _ string) (throttle.Verdict, error) {
	s.scopes = append(s.scopes, one)
	return throttle.Verdict{Allowed: true, Unlimited: true}, nil
}

// GiveBack implements [throttle.Throttle].
func (*server) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error { return nil }

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{metadata: authorizing.Metadata{Issuer: issuer, Documents: true}}
	log := logrus.New()
	log.SetOutput(io.Discard)
	s.url = resttest.Serve(t, rest.New(resttest.Config(), rest.Ports{
		Parts: []rest.Part{tokenapi.New(tokenapi.UseCases{
			Token: func(_ context.Context, r authorizing.TokenRequest) (authorizing.Tokens, error) {
				s.request, s.calls = r, append(s.calls, "token")
				return s.tokens, s.err
			},
			Revoke: func(_ context.Context, r authorizing.TokenRequest) error {
				s.request, s.calls = r, append(s.calls, "revoke")
				return s.err
			},
			Introspect: func(_ context.Context, who authority.Caller, token string) (authorizing.Introspection, error) {
				s.calls = append(s.calls, who.Actor().Who+" examines "+token)
				return s.found, s.err
			},
			Metadata:  func(context.Context) (authorizing.Metadata, error) { return s.metadata, s.err },
			Authority: s, Issuer: issuer,
		})}, Throttle: s, Clock: clocktest.NewManual(now), Log: logrus.NewEntry(log),
	}))
	return s
}

type response struct {
	status int
	header http.Header
	body   string
}

// call sends a request; headers are names followed by values.
func (s *server) call(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	must.Succeed(t, err)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	got, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must.Succeed(t, err)
	return response{got.StatusCode, got.Header, string(text)}
}

func (s *server) post(t *testing.T, path, body string, headers ...string) response {
	t.Helper()
	return s.call(t, "POST", path, body, append(headers, "Content-Type", form)...)
}

// TestMetadata checks the metadata of T-2, which pages of any origin may read.
func TestMetadata(t *testing.T) {
	s := serve(t)
	const path = "/.well-known/oauth-authorization-server"
	const algorithms = `["RS256","RS384","RS512","PS256","PS384","PS512","ES256","ES384","ES512","EdDSA"]`
	want := `{"issuer":"https://tools.example.com","authorization_endpoint":"https://tools.example.com/oauth2/authorize",` +
		`"token_endpoint":"https://tools.example.com/oauth2/token","revocation_endpoint":"https://tools.example.com/oauth2/revoke",` +
		`"introspection_endpoint":"https://tools.example.com/oauth2/introspect","jwks_uri":"https://tools.example.com/.well-known/jwks.json",` +
		`"response_types_supported":["code"],"response_modes_supported":["query"],"grant_types_supported":["authorization_code","refresh_token"],` +
		`"code_challenge_methods_supported":["S256"],` +
		`"token_endpoint_auth_methods_supported":["none","private_key_jwt","client_secret_basic","client_secret_post"],` +
		`"token_endpoint_auth_signing_alg_values_supported":` + algorithms + `,"revocation_endpoint_auth_methods_supported":["none","private_key_jwt","client_secret_basic","client_secret_post"],` +
		`"revocation_endpoint_auth_signing_alg_values_supported":` + algorithms + `,"client_id_metadata_document_supported":true,"authorization_response_iss_parameter_supported":true,` +
		`"acr_values_supported":["HIGH_RISK","UNVERIFIED","LIMITED_TRUST","FULL_TRUST"],"scopes_supported":["mcp-registry:read","mcp-registry:write"]}`
	got := s.call(t, "GET", path, "", "Origin", "https://page.example")
	if got.status != 200 || got.body != want || got.header.Get("Cache-Control") != "public, max-age=300" || got.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v\n%s", got.status, got.header, got.body)
	}
	s.metadata.Documents, s.metadata.Assertions = false, true
	var m map[string]any
	must.Succeed(t, json.Unmarshal([]byte(s.call(t, "GET", path, "").body), &m))
	grants, _ := json.Marshal([]any{m["grant_types_supported"], m["authorization_grant_profiles_supported"], m["client_id_metadata_document_supported"]})
	if string(grants) != `[["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:jwt-bearer"],["urn:ietf:params:oauth:grant-profile:id-jag"],false]` {
		t.Errorf("with assertions: %s", grants)
	}
	for _, other := range []string{"/.well-known/openid-configuration", path + "/x", "/oauth2", "/oauth2/register"} {
		if got := s.call(t, "GET", other, ""); got.status != 404 {
			t.Errorf("%s is %d", other, got.status)
		}
	}
	s.err = fault.New(fault.Unavailable, "the database is not available")
	if got := s.call(t, "GET", path, ""); got.status != 503 || got.header.Get("Cache-Control") != "no-store" || got.header.Get("Retry-After") == "" {
		t.Errorf("away: %d %v", got.status, got.header)
	}
}

// TestTokens: what a client sends is handed on as it is, and no cache keeps what it gets.
func TestTokens(t *testing.T) {
	s := serve(t)
	s.tokens = authorizing.Tokens{Access: "access", Refresh: "refresh", ExpiresIn: 10 * time.Minute, Scopes: []string{"a", "b"}}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("a%3Ab:c%2B+d:e"))
	got := s.post(t, "/oauth2/token", "code=1&code=2&resource=x%26y", "Authorization", basic, "Origin", "https://page.example", "Cookie", "tollgate=x")
	if got.status != 200 || got.body != `{"access_token":"access","token_type":"Bearer","expires_in":600,"refresh_token":"refresh","scope":"a b"}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	if h := got.header; h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("the headers are %v", h)
	}
	if r := s.request; len(r.Form["code"]) != 2 || r.Form.Get("resource") != "x&y" || *r.Basic != (authorizing.BasicCredentials{ID: "a:b", Secret: "c+ d:e"}) ||
		r.From.String() != "127.0.0.1" {
		t.Errorf("the request is %+v, %+v", r, r.Basic)
	}
	s.tokens = authorizing.Tokens{Access: "access", ExpiresIn: time.Minute}
	if got := s.post(t, "/oauth2/token", ""); got.body != `{"access_token":"access","token_type":"Bearer","expires_in":60}` || s.request.Basic != nil {
		t.Errorf("%s of %+v", got.body, s.request)
	}
	if got := s.post(t, "/oauth2/revoke", "token=x"); got.status != 200 || got.body != "" || got.header.Get("Cache-Control") != "no-store" || s.request.Form.Get("token") != "x" {
		t.Errorf("a revocation: %d %s %v", got.status, got.body, got.header)
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth2/token", "/oauth2/revoke"} {
		got := s.call(t, "OPTIONS", path, "", "Origin", "https://page.example", "Access-Control-Request-Method", "POST")
		if h := got.header; got.status != 204 || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
			h.Get("Access-Control-Allow-Headers") == "" {
			t.Errorf("the preflight of %s: %d %v", path, got.status, h)
		}
	}
	if got := s.call(t, "OPTIONS", "/oauth2/introspect", ""); got.status != 405 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of an introspection: %d %v", got.status, got.header)
	}
}

// TestBadRequests: what is no request of a client reaches no use case.
func TestBadRequests(t *testing.T) {
	s := serve(t)
	type request struct {
		method, body string
		headers      []string
	}
	of := func(body string, headers ...string) request { return request{"POST", body, headers} }
	for name, c := range map[string]struct {
		request

		status int
		code   string
	}{
		"GET":               {request{"GET", "", nil}, 405, "invalid_request"},
		"PUT":               {request{"PUT", "a=b", []string{"Content-Type", form}}, 405, "invalid_request"},
		"JSON":              {of(`{"token":"x"}`, "Content-Type", "application/json"), 400, "invalid_request"},
		"no type":           {of("token=x"), 400, "invalid_request"},
		"multipart":         {of("token=x", "Content-Type", "multipart/form-data; boundary=x"), 400, "invalid_request"},
		"compressed":        {of("token=x", "Content-Type", form, "Content-Encoding", "gzip"), 400, "invalid_request"},
		"too long":          {of("token="+strings.Repeat("x", 33<<10), "Content-Type", form), 413, "invalid_request"},
		"not encoded":       {of("token=%zz", "Content-Type", form), 400, "invalid_request"},
		"another separator": {of("token=x;y=z", "Content-Type", form), 400, "invalid_request"},
	} {
		for _, path := range []string{"/oauth2/token", "/oauth2/revoke", "/oauth2/introspect"} {
			headers := c.headers
			if path == "/oauth2/introspect" {
				headers = append(slices.Clone(headers), "Authorization", "Bearer ada")
			}
			got := s.call(t, c.method, path, c.body, headers...)
			if got.status != c.status || !strings.HasPrefix(got.body, `{"error":"`+c.code+`","error_description":"`) || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s to %s: %d %s", name, path, got.status, got.body)
			}
		}
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("a:b"))
	for _, headers := range [][]string{
		{"Authorization", "Bearer x"}, {"Authorization", "Basic"}, {"Authorization", "Basic ***"}, {"Authorization", basic, "Authorization", basic},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("a"))},
		{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("a:%zz"))},
	} {
		got := s.post(t, "/oauth2/token", "grant_type=x", headers...)
		if got.status != 401 || !strings.Contains(got.body, `"invalid_client"`) || got.header.Get("WWW-Authenticate") != `Basic realm="tollgate"` {
			t.Errorf("%v: %d %s %v", headers, got.status, got.body, got.header)
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("the calls are %v", s.calls)
	}
}

// TestRefusals: an error has the code of OAuth, and says nothing of what is inside.
func TestRefusals(t *testing.T) {
	s := serve(t)
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{oauth.Refuse(oauth.CodeInvalidGrant, "the code is used"), 400, `{"error":"invalid_grant","error_description":"the code is used"}`},
		{oauth.Refuse(oauth.CodeInvalidClient, "unknown"), 401, `{"error":"invalid_client","error_description":"unknown"}`},
		{oauth.Refuse(oauth.CodeInvalidTarget, "no"), 400, `{"error":"invalid_target","error_description":"no"}`},
		{fault.New(fault.Invalid, "no").WithCode("inner"), 400, `{"error":"invalid_request","error_description":"no"}`},
		{fault.New(fault.Unauthenticated, "no").WithCode(auth.CodeTokenExpired), 401, `{"error":"invalid_client","error_description":"no"}`},
		{fault.New(fault.Forbidden, "no").WithCode("inner"), 400, `{"error":"access_denied","error_description":"no"}`},
		{fault.New(fault.Exhausted, "too many").After(2500 * time.Millisecond), 429, `{"error":"temporarily_unavailable","error_description":"too many"}`},
		{fault.New(fault.Unavailable, "away").After(time.Second), 503, `{"error":"temporarily_unavailable","error_description":"away"}`},
		{fault.New(fault.NotFound, "row 7"), 500, `{"error":"server_error","error_description":"internal error"}`},
		{fault.Wrap(fault.Internal, "row 7", io.EOF), 500, `{"error":"server_error","error_description":"internal error"}`},
		{io.ErrUnexpectedEOF, 500, `{"error":"server_error","error_description":"internal error"}`},
	} {
		s.err = c.err
		for _, path := range []string{"/oauth2/token", "/oauth2/revoke"} {
			got := s.post(t, path, "token=x")
			if got.status != c.status || got.body != c.body || got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("WWW-Authenticate") != "" ||
				got.header.Get("Retry-After") != map[int]string{429: "3", 503: "1"}[c.status] || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%v at %s: %d %s %v", c.err, path, got.status, got.body, got.header)
			}
		}
	}
}

// TestIntrospection: only a caller with a token examines another, whose token is looked at before the body is read.
func TestIntrospection(t *testing.T) {
	s := serve(t)
	s.found = authorizing.Introspection{
		Active: true, Subject: "user", Session: "session", ID: "family.1", IssuedAt: now, ExpiresAt: now.Add(time.Minute),
		Claims: oauth.Claims{Client: "client", Resource: "https://mail.example.com/mcp", Scopes: []string{"a", "b"}, Level: auth.LimitedTrust, AuthTime: now.Add(-time.Hour)},
	}
	got := s.post(t, "/oauth2/introspect", "token=x&token_type_hint=access_token", "Authorization", "Bearer ada")
	if got.status != 200 || got.header.Get("Cache-Control") != "no-store" || got.header.Get("Access-Control-Allow-Origin") != "" ||
		got.body != `{"active":true,"scope":"a b","client_id":"client","token_type":"Bearer","exp":1800000060,"iat":1800000000,"sub":"user",`+
			`"aud":"https://mail.example.com/mcp","iss":"https://tools.example.com","jti":"family.1","acr":"LIMITED_TRUST","auth_time":1799996400,"sid":"session"}` {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	if strings.Join(s.calls, "") != "person:ada examines x" || s.scopes[0] != throttle.Decisions {
		t.Errorf("the calls are %v, in %v", s.calls, s.scopes)
	}
	s.found.Active = false
	if got := s.post(t, "/oauth2/introspect", "token=x", "Authorization", "Bearer ada"); got.body != `{"active":false}` {
		t.Errorf("an ended token: %s", got.body)
	}
	s.err = scope.Insufficient(scope.Decide)
	got = s.post(t, "/oauth2/introspect", "token=x", "Authorization", "Bearer ada")
	if got.status != 403 || !strings.Contains(got.body, `"insufficient_scope"`) || got.header.Get("WWW-Authenticate") != `Bearer error="insufficient_scope", scope="decide"` {
		t.Errorf("without the scope: %d %s %v", got.status, got.body, got.header)
	}
	s.calls, s.scopes, s.err = nil, nil, nil
	for _, body := range []string{"", "token=", "token=x&token=y"} {
		if got := s.post(t, "/oauth2/introspect", body, "Authorization", "Bearer ada"); body != "token=" && (got.status != 400 || len(s.calls) > 1) {
			t.Errorf("%q: %d %s", body, got.status, got.body)
		}
	}
	s.calls, s.scopes = nil, nil
	for token, want := range map[string]struct {
		status    int
		challenge string
	}{"": {401, "Bearer"}, "bad": {401, `Bearer error="invalid_token"`}, "away": {503, ""}} {
		var headers []string
		if token != "" {
			headers = []string{"Authorization", "Bearer " + token}
		}
		got := s.post(t, "/oauth2/introspect", "token="+strings.Repeat("x", 33<<10), headers...)
		if got.status != want.status || got.header.Get("WWW-Authenticate") != want.challenge || !strings.HasPrefix(got.body, `{"error":"`) {
			t.Errorf("%q: %d %s %v", token, got.status, got.body, got.header)
		}
	}
	if len(s.calls) != 0 || !slices.Contains(s.scopes, throttle.APIAddress) {
		t.Errorf("the calls are %v, in %v", s.calls, s.scopes)
	}
}
