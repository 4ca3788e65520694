package oidcissuer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Provider is a provider of company sign-in on this machine: an issuer with the endpoints of the code
// flow. Its person is signed in already, and everything that it says can be changed.
type Provider struct {
	*Issuer

	ClientID string
	Secret   string // of the client; empty for PKCE alone

	t testing.TB

	mu       sync.Mutex
	behave   Behaviour
	requests map[string]url.Values // of sign-ins, by code
	grants   map[string]string     // the codes of access tokens
	calls    map[string]int        // of the endpoints
	spent    time.Duration         // see Spent
}

// Behaviour is what a Provider says. Nil functions and empty values are those of a good provider.
type Behaviour struct {
	Claims   map[string]any // in the ID token and the userinfo document, besides those of the protocol
	Userinfo map[string]any // instead of Claims there
	// Token changes the claims of an ID token before it is signed.
	Token func(claims map[string]any)
	// Sign signs the claims of an ID token.
	Sign func(claims map[string]any) string
	// Answer changes the parameters that the browser brings back.
	Answer func(parameters url.Values)
	// Exchange responds to a request of the token endpoint; it returns false to let it work.
	Exchange func(w http.ResponseWriter, form url.Values) bool
	Announce bool   // that answers have the parameter iss, and they have it
	Refresh  string // the refresh token; empty without one
	Rotates  bool   // each use of the refresh token replaces it, and the one before is refused
	Left     bool   // the refresh token is refused with invalid_grant
}

// The paths of the endpoints of a provider.
const (
	AuthorizePath = "/authorize"
	TokenPath     = "/token"
	UserinfoPath  = "/userinfo"
)

// StartProvider runs a provider over HTTP until the test ends.
func StartProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{
		Issuer: newIssuer(t), ClientID: "tollgate", Secret: "the secret of the client", t: t,
		requests: map[string]url.Values{}, grants: map[string]string{}, calls: map[string]int{},
	}
	server := httptest.NewServer(p)
	p.endWith(t, server)
	return p
}

// Behave sets what the provider says.
func (p *Provider) Behave(b Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behave = b
}

// SignIn sets the claims about the person who signs in next.
func (p *Provider) SignIn(subject, email string, claims ...any) {
	all := map[string]any{"sub": subject, "email": email}
	if email == "" {
		delete(all, "email")
	}
	for i := 0; i < len(claims); i += 2 {
		all[fmt.Sprint(claims[i])] = claims[i+1]
	}
	p.Behave(Behaviour{Claims: all})
}

// Calls returns how often an endpoint was called.
func (p *Provider) Calls(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[path]
}

// Spent returns how long the provider has worked for all requests.
func (p *Provider) Spent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// ServeHTTP responds as a provider.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.calls[r.URL.Path]++
	p.mu.Unlock()
	p.Issuer.mu.Lock()
	instead := p.Issuer.instead[r.URL.Path]
	p.Issuer.mu.Unlock()
	if instead != nil {
		instead.ServeHTTP(w, r) // it may hang
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	defer func() { p.spent += time.Since(began) }()
	switch r.URL.Path {
	case AuthorizePath:
		p.authorize(w, r)
	case TokenPath:
		p.exchange(w, r)
	case UserinfoPath:
		p.describe(w, r)
	case DiscoveryPath:
		Document(p.discovery()).ServeHTTP(w, r)
	default:
		p.Issuer.ServeHTTP(w, r)
	}
}

func (p *Provider) discovery() map[string]any {
	all := p.Discovery()
	all["authorization_endpoint"], all["token_endpoint"] = p.URL+AuthorizePath, p.URL+TokenPath
	all["userinfo_endpoint"], all["code_challenge_methods_supported"] = p.URL+UserinfoPath, []string{"S256"}
	if p.behave.Announce {
		all["authorization_response_iss_parameter_supported"] = true
	}
	return all
}

// authorize sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q, code := r.URL.Query(), rand.Text()
	if q.Get("code_challenge_method") != "S256" || q.Get("client_id") != p.ClientID || q.Get("response_type") != "code" {
		http.Error(w, "the request is wrong", http.StatusBadRequest)
		return
	}
	p.requests[code] = q
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	if p.behave.Announce {
		answer.Set("iss", p.URL)
	}
	if p.behave.Answer != nil {
		p.behave.Answer(answer)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

// exchange gives tokens for a code, once, to who has the verifier and the secret.
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if p.behave.Exchange != nil && p.behave.Exchange(w, r.Form) {
		return
	}
	if p.behave.Refresh != "" && r.Form.Get("refresh_token") == p.behave.Refresh && !p.behave.Left {
		if p.behave.Rotates {
			p.behave.Refresh = rand.Text()
		}
		p.respond(w, "")
		return
	}
	request, known := p.requests[r.Form.Get("code")]
	delete(p.requests, r.Form.Get("code"))
	sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
	user, secret, _ := r.BasicAuth()
	if !known || base64.RawURLEncoding.EncodeToString(sum[:]) != request.Get("code_challenge") ||
		request.Get("redirect_uri") != r.Form.Get("redirect_uri") ||
		p.Secret != "" && (user != p.ClientID || secret != url.QueryEscape(p.Secret)) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`)) // the client may be gone
		return
	}
	p.respond(w, request.Get("nonce"))
}

func (p *Provider) respond(w http.ResponseWriter, nonce string) {
	now := time.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": p.ClientID, "exp": now.Add(5 * time.Minute).Unix(), "iat": now.Unix(), "nonce": nonce,
	}
	for name, value := range p.behave.Claims {
		claims[name] = value
	}
	if nonce == "" {
		delete(claims, "nonce")
	}
	if p.behave.Token != nil {
		p.behave.Token(claims)
	}
	access := rand.Text()
	subject, _ := claims["sub"].(string)
	p.grants[access] = subject
	sign := p.behave.Sign
	if sign == nil {
		sign = func(claims map[string]any) string { return p.Sign(p.t, claims) }
	}
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": sign(claims)}
	if p.behave.Refresh != "" {
		answer["refresh_token"] = p.behave.Refresh
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// describe is the userinfo endpoint.
func (p *Provider) describe(w http.ResponseWriter, r *http.Request) {
	subject, known := p.grants[r.Header.Get("Authorization")[min(len("Bearer "), len(r.Header.Get("Authorization"))):]]
	if !known {
		http.Error(w, "unknown", http.StatusUnauthorized)
		return
	}
	all := map[string]any{"sub": subject}
	for name, value := range p.behave.Userinfo {
		all[name] = value
	}
	Document(all).ServeHTTP(w, r)
}
