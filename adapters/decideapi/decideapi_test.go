package decideapi

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

// callers knows people by their names, and the tokens of the service account proxy.
type callers struct{ authoritytest.Callers }

func (c callers) IdentifyReader(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	switch token {
	case "bad", "granted":
		return authority.Caller{}, fault.New(fault.Unauthenticated, "bad")
	case "away":
		return authority.Caller{}, fault.New(fault.Unavailable, "away")
	case "key":
		return newKey(scope.Decide, from), nil
	case "other key":
		return newKey(scope.Admin, from), nil
	}
	return c.Callers.IdentifyReader(ctx, token, from)
}

// IdentifyCall knows the token of an application as well, which is good for calls only.
func (c callers) IdentifyCall(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	if token == "granted" {
		return authority.NewGranted(authority.Granted{UserID: "ada", Client: "vscode", Resource: &access.Resource{}}, from), nil
	}
	return c.IdentifyReader(ctx, token, from)
}

// IdentifyVerified knows Ada at one issuer.
func (c callers) IdentifyVerified(ctx context.Context, payload []byte, from netip.Addr) (authority.Caller, error) {
	if !strings.Contains(string(payload), `"iss":"https://login.example.com"`) {
		return authority.Caller{}, fault.New(fault.Unauthenticated, "bad")
	}
	return c.Identify(ctx, "ada", from)
}

// permit permits the scope decide.
func permit(_ context.Context, who authority.Caller) error {
	if t, ok := who.Token(); !ok || !t.Scopes.Has(scope.Decide) {
		return scope.Insufficient(scope.Decide)
	}
	return nil
}

func newKey(s scope.Scope, from netip.Addr) authority.Caller {
	return authority.NewToken(authority.Token{Scopes: scope.Set{s}}, from)
}

// recorder is a decision, which allows everything at first, and the last question.
type recorder struct {
	asked   deciding.Question
	decides access.Decision
	err     error
}

func (r *recorder) decide(_ context.Context, q deciding.Question) (deciding.Answer, error) {
	r.asked = q
	return deciding.Answer{Decision: r.decides, Subject: ada}, r.err
}

// denied denies the calls of what begins with "no".
func (r *recorder) denied(_ context.Context, q deciding.Question, calls []access.Call) ([]bool, error) {
	r.asked = q
	denied := make([]bool, len(calls))
	for i, c := range calls {
		denied[i] = strings.HasPrefix(c.Name, "no")
	}
	return denied, r.err
}

func newAPI(c Config) (*API, *recorder) {
	r := recorder{decides: access.Decision{Effect: access.Allow, Server: "com.example/weather", Rule: "r"}}
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(c, Ports{Authority: callers{}, Decide: r.decide, Denied: r.denied, Permit: permit, Log: logrus.NewEntry(log)}), &r
}

// TestTokens checks who calls by the headers Authorization.
func TestTokens(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{})
	for _, c := range []struct {
		headers []string
		who     string // empty for nobody
		refused bool
	}{
		{nil, "", false},
		{[]string{"Bearer ada"}, "ada", false},
		{[]string{"bearer  ada "}, "ada", false},
		{[]string{"Bearer bad"}, "", true},
		{[]string{"Bearer ada", "Bearer ada"}, "", true},
		{[]string{"", "Bearer ada"}, "", true},
		{[]string{""}, "", true},
		{[]string{"Bearer"}, "", true},
		{[]string{"Basic YWRhOmFkYQ=="}, "", true},
		{[]string{"ada"}, "", true},
	} {
		if _, err := a.answer(t.Context(), &request{authorization: c.headers}); err != nil {
			t.Fatal(err)
		}
		who, _ := r.asked.Caller.Person()
		if string(who) != c.who || fault.Is(r.asked.Refusal, fault.Unauthenticated) != c.refused {
			t.Errorf("%q is %q, error %v", c.headers, who, r.asked.Refusal)
		}
	}
}

// TestQuestion checks that the question has what the request says, and that an error is passed on.
func TestQuestion(t *testing.T) {
	t.Parallel()
	from := netip.MustParseAddr("192.0.2.9")
	for _, trusts := range []bool{false, true} {
		a, r := newAPI(Config{TrustHeaders: trusts})
		_, err := a.answer(t.Context(), &request{
			server: "com.example/weather", address: access.Address{Host: "a"}, from: from,
			call: access.Request{Method: "POST", HeaderMethod: "tools/call", HeaderName: "forecast"},
		})
		if err != nil || r.asked.Server != "com.example/weather" || r.asked.Address.Host != "a" || r.asked.From != from ||
			(r.asked.Call.Tool() == "forecast") != trusts {
			t.Errorf("trusted headers %t: %+v, error %v", trusts, r.asked, err)
		}
		r.err = fault.New(fault.Unavailable, "away")
		if _, err := a.answer(t.Context(), &request{}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("error %v", err)
		}
	}
}

// TestKeys checks by which tokens a proxy proves what it is.
func TestKeys(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(Config{})
	for key, code := range map[string]fault.Code{
		"key": "", "other key": scope.CodeInsufficient, "ada": scope.CodeInsufficient, "bad": auth.CodeInvalidToken, "": auth.CodeInvalidToken,
	} {
		err := a.requireKey(t.Context(), key, netip.Addr{})
		f, _ := fault.As(err)
		if (err == nil) != (code == "") || f != nil && f.Kind == fault.Forbidden && f.Code != code {
			t.Errorf("%q: error %v", key, err)
		}
	}
}

// TestTokensOfApplications checks that their token says who calls a server, and is no key of a proxy.
func TestTokensOfApplications(t *testing.T) {
	t.Parallel()
	a, r := newAPI(Config{})
	_, err := a.answer(t.Context(), &request{authorization: []string{"Bearer granted"}})
	if g := r.asked.Caller.Granted(); err != nil || r.asked.Refusal != nil || g == nil || g.Client != "vscode" {
		t.Errorf("the question is %+v, %v", r.asked, err)
	}
	if err := a.requireKey(t.Context(), "granted", netip.Addr{}); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("it is a key: %v", err)
	}
}
