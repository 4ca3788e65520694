package webtest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

// Verifier is the code verifier (RFC 7636) of CommandRequest.
const Verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// CommandRequest returns the address of the page with a request, of which some parameters are changed.
func CommandRequest(changes ...string) string {
	sum := sha256.Sum256([]byte(Verifier))
	q := url.Values{
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"redirect_uri": {"http://127.0.0.1:1/callback"}, "state": {"some-state"},
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return "/console/sign-in/command?" + q.Encode()
}

// Redirected sends a request, and returns the parameters with which its answer leads to the command.
func (b *Browser) Redirected(r *http.Request) url.Values {
	b.T.Helper()
	once := &http.Client{Jar: b.Client.Jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := once.Do(r)
	if err != nil {
		b.T.Fatal(err)
	}
	_ = response.Body.Close()
	to, err := response.Location()
	if err != nil || to.Host != "127.0.0.1:1" || response.StatusCode != http.StatusSeeOther {
		b.T.Fatalf("status %d, location %v, error %v", response.StatusCode, to, err)
	}
	return to.Query()
}
