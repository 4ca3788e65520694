package authorizing_test

import (
	"context"
	"crypto/sha256"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// revoke ends an unknown token, which succeeds for every client that has proved who it is.
func (fx *fixture) revoke(basic *authorizing.BasicCredentials, changes ...string) error {
	form := with(url.Values{"token": {"unknown"}}, changes...)
	return fx.service.Revoke(context.Background(), authorizing.TokenRequest{Form: form, Basic: basic, From: home})
}

func (fx *fixture) clientAssertion(id string, changes ...any) string {
	claims := map[string]any{
		"iss": id, "sub": id, "aud": issuer + oauth.TokenPath, "jti": "1", "exp": fx.clock.Now().Add(time.Minute).Unix(),
	}
	for i := 0; i < len(changes); i += 2 {
		claims[changes[i].(string)] = changes[i+1]
	}
	return sign(claims, "key")
}

// TestClientsProveWhoTheyAre checks each method, and that no other one is taken for it.
func TestClientsProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	basic := func(id, s string) *authorizing.BasicCredentials {
		return &authorizing.BasicCredentials{ID: id, Secret: s}
	}
	keyed := func(fx *fixture, token string, more ...string) error {
		return fx.revoke(nil, append([]string{"client_assertion", token, "client_assertion_type", assertionType}, more...)...)
	}
	for name, c := range map[string]struct {
		prove func(*fixture) error
		code  fault.Code // empty for success
	}{
		"a secret in the form": {func(fx *fixture) error { return fx.revoke(nil, "client_id", "app", "client_secret", secret) }, ""},
		"a wrong secret": {func(fx *fixture) error {
			return fx.revoke(nil, "client_id", "app", "client_secret", secret+"x")
		}, oauth.CodeInvalidClient},
		"no secret":          {func(fx *fixture) error { return fx.revoke(nil, "client_id", "app") }, oauth.CodeInvalidClient},
		"an unknown client":  {func(fx *fixture) error { return fx.revoke(nil, "client_id", "x", "client_secret", "y") }, oauth.CodeInvalidClient},
		"no client":          {func(fx *fixture) error { return fx.revoke(nil) }, oauth.CodeInvalidClient},
		"the other way":      {func(fx *fixture) error { return fx.revoke(basic("app", secret)) }, oauth.CodeInvalidClient},
		"basic":              {func(fx *fixture) error { return fx.revoke(basic("basic", secret)) }, ""},
		"basic with its id":  {func(fx *fixture) error { return fx.revoke(basic("basic", secret), "client_id", "basic") }, ""},
		"basic with another": {func(fx *fixture) error { return fx.revoke(basic("basic", secret), "client_id", "app") }, oauth.CodeInvalidClient},
		"basic of another":   {func(fx *fixture) error { return fx.revoke(basic("basic", ""), "client_id", "basic") }, oauth.CodeInvalidClient},
		"two ways": {func(fx *fixture) error {
			return fx.revoke(basic("basic", secret), "client_secret", secret)
		}, oauth.CodeInvalidRequest},
		"a key and a secret": {func(fx *fixture) error {
			return keyed(fx, fx.clientAssertion("keyed"), "client_secret", secret)
		}, oauth.CodeInvalidRequest},
		"none":                    {func(fx *fixture) error { return fx.revoke(nil, "client_id", "other") }, ""},
		"none with a secret":      {func(fx *fixture) error { return fx.revoke(nil, "client_id", "other", "client_secret", "a") }, oauth.CodeInvalidClient},
		"none with no secret yet": {func(fx *fixture) error { return fx.revoke(nil, "client_id", "new", "client_secret", "a") }, oauth.CodeInvalidClient},
		"a document":              {func(fx *fixture) error { return fx.revoke(nil, "client_id", document) }, ""},
		"a document of evil":      {func(fx *fixture) error { return fx.revoke(nil, "client_id", "https://evil.example/c") }, oauth.CodeInvalidClient},
		"a key":                   {func(fx *fixture) error { return keyed(fx, fx.clientAssertion("keyed")) }, ""},
		"a key with its id":       {func(fx *fixture) error { return keyed(fx, fx.clientAssertion("keyed"), "client_id", "keyed") }, ""},
		"a key with another id":   {func(fx *fixture) error { return keyed(fx, fx.clientAssertion("keyed"), "client_id", "app") }, oauth.CodeInvalidClient},
		"a key for evil":          {func(fx *fixture) error { return keyed(fx, fx.clientAssertion("keyed", "aud", "https://evil.example")) }, oauth.CodeInvalidClient},
		"a key of another issuer": {func(fx *fixture) error { return keyed(fx, fx.clientAssertion("keyed", "iss", "app")) }, oauth.CodeInvalidClient},
		"a key of a client with a secret": {func(fx *fixture) error {
			return keyed(fx, fx.clientAssertion("app"))
		}, oauth.CodeInvalidClient},
		"another key":   {func(fx *fixture) error { return keyed(fx, fx.clientAssertion("keyed")+"x") }, oauth.CodeInvalidClient},
		"no assertion":  {func(fx *fixture) error { return keyed(fx, "") }, oauth.CodeInvalidClient},
		"no key at all": {func(fx *fixture) error { return fx.revoke(nil, "client_id", "keyed") }, oauth.CodeInvalidClient},
		"another type": {func(fx *fixture) error {
			return fx.revoke(nil, "client_assertion", fx.clientAssertion("keyed"), "client_assertion_type", "saml")
		}, oauth.CodeInvalidRequest},
		"a key that was used before": {func(fx *fixture) error {
			must.Succeed(fx.t, keyed(fx, fx.clientAssertion("keyed")))
			return keyed(fx, fx.clientAssertion("keyed"))
		}, oauth.CodeInvalidClient},
		"a key that is used again later": {func(fx *fixture) error {
			token := fx.clientAssertion("keyed")
			must.Succeed(fx.t, keyed(fx, token))
			fx.clock.Advance(110 * time.Second) // within the skew
			return keyed(fx, token)
		}, oauth.CodeInvalidClient},
	} {
		fx := newFixture(t, func(fx *fixture) {
			fx.clients["basic"] = oauth.Client{ID: "basic", Method: oauth.MethodSecretBasic, SecretHash: sha256.Sum256([]byte(secret))}
			fx.clients["new"] = oauth.Client{ID: "new", Method: oauth.MethodSecretInForm}
		})
		err := c.prove(fx)
		if f, _ := fault.As(err); (err == nil) != (c.code == "") || f != nil && f.Code != c.code {
			t.Errorf("%s: %v, want the code %q", name, err, c.code)
		}
		if fault.Is(err, fault.Unauthenticated) != (c.code == oauth.CodeInvalidClient) {
			t.Errorf("%s: the kind of %v", name, err)
		}
	}
}

// TestUnknownClientsLookAlike checks that no one learns which clients there are.
func TestUnknownClientsLookAlike(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	known := fx.revoke(nil, "client_id", "app", "client_secret", "x")
	for _, id := range []string{"nobody", "a\x00", "https://evil.example/c", "https://editor.example/other", strings.Repeat("a", 3000)} {
		if err := fx.revoke(nil, "client_id", id, "client_secret", "x"); err == nil || err.Error() != known.Error() {
			t.Errorf("%.30q: %v, and a known one: %v", id, err, known)
		}
	}
}

// TestTokenRequestsAreCounted checks that requests are counted by client and address, before a document or a
// key is read, and that parameters that are there twice are refused.
func TestTokenRequestsAreCounted(t *testing.T) {
	t.Parallel()
	counts := &fixedThrottle{refuses: throttle.OAuthToken}
	fx := newFixture(t, func(fx *fixture) { fx.ports.Throttle = counts })
	fx.documents.err = fault.New(fault.Internal, "was read")
	for _, id := range []string{document, document, "app"} {
		if _, err := fx.token(url.Values{"client_id": {id}}); !fault.Is(err, fault.Exhausted) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if len(counts.keys) != 3 || counts.keys[0] != counts.keys[1] || counts.keys[0] == counts.keys[2] ||
		!strings.HasSuffix(counts.keys[0], home.String()) {
		t.Errorf("counted as %q", counts.keys)
	}
	fx = newFixture(t)
	for _, name := range []string{"client_id", "client_secret", "grant_type", "code"} {
		form := codeForm("x")
		form.Add(name, form.Get(name))
		_, err := fx.token(form)
		fx.wantCode(name+" twice", err, oauth.CodeInvalidRequest)
	}
	_, err := fx.token(codeForm("x", "grant_type", "password"))
	fx.wantCode("another grant", err, oauth.CodeUnsupportedGrantType)
}

func TestKeysThatAreAway(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, func(fx *fixture) { fx.ports.Documents = awayDocuments{fx.documents} })
	err := fx.revoke(nil, "client_assertion", fx.clientAssertion("keyed"), "client_assertion_type", assertionType)
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// TestDocumentsThatAreAway: a client whose document cannot be read now is not told that it is unknown.
func TestDocumentsThatAreAway(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]fault.Kind{oauth.CodeDocumentAway: fault.Unavailable, "": fault.Unauthenticated} {
		fx := newFixture(t)
		fx.documents.clients = nil
		fx.documents.err = fault.New(fault.Invalid, "there was no answer in time").WithCode(code)
		_, err := fx.token(refreshForm("x", "client_id", document, "client_secret", ""))
		if f, _ := fault.As(err); f.Kind != want && !(want == fault.Unauthenticated && f.Code == oauth.CodeInvalidClient) {
			t.Errorf("%q: %v", code, err)
		}
	}
}

// awayDocuments are documents whose keys cannot be read.
type awayDocuments struct{ *testDocuments }

func (awayDocuments) Verify(context.Context, *oauth.Client, string) ([]byte, error) {
	return nil, fault.New(fault.Unavailable, "the keys cannot be read")
}
