package oauth_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // of RFC 7636, appendix B
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func query(changes ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
		"resource": {"https://wiki.example/mcp"}, "state": {"s 1"},
	}
	for i := 0; i < len(changes); i += 2 {
		switch name := changes[i]; {
		case strings.HasPrefix(name, "+"):
			q.Add(name[1:], changes[i+1])
		case changes[i+1] == "":
			q.Del(name)
		default:
			q.Set(name, changes[i+1])
		}
	}
	return q
}

func TestReadRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes []string
		code    fault.Code
	}{
		"whole":                    {nil, ""},
		"another response type":    {[]string{"response_type", "token"}, oauth.CodeUnsupportedResponseType},
		"no response type":         {[]string{"response_type", ""}, oauth.CodeInvalidRequest},
		"another response mode":    {[]string{"response_mode", "fragment"}, oauth.CodeInvalidRequest},
		"a response mode":          {[]string{"response_mode", "query"}, ""},
		"no challenge":             {[]string{"code_challenge", ""}, oauth.CodeInvalidRequest},
		"a short challenge":        {[]string{"code_challenge", challenge[1:]}, oauth.CodeInvalidRequest},
		"a long challenge":         {[]string{"code_challenge", strings.Repeat("a", 129)}, oauth.CodeInvalidRequest},
		"a challenge with a slash": {[]string{"code_challenge", "/" + challenge[1:]}, oauth.CodeInvalidRequest},
		"plain":                    {[]string{"code_challenge_method", "plain"}, oauth.CodeInvalidRequest},
		"no method":                {[]string{"code_challenge_method", ""}, oauth.CodeInvalidRequest},
		"no resource":              {[]string{"resource", ""}, oauth.CodeInvalidTarget},
		"two resources":            {[]string{"+resource", "https://mail.example/mcp"}, oauth.CodeInvalidTarget},
		"two scopes":               {[]string{"scope", "a", "+scope", "b"}, oauth.CodeInvalidRequest},
		"two of any":               {[]string{"x", "1", "+x", "1"}, oauth.CodeInvalidRequest},
		"a scope that is none":     {[]string{"scope", `a"b`}, oauth.CodeInvalidScope},
		"a long state":             {[]string{"state", strings.Repeat("s", 1025)}, oauth.CodeInvalidRequest},
		"a state with a NUL":       {[]string{"state", "a\x00"}, oauth.CodeInvalidRequest},
		"an unknown prompt":        {[]string{"prompt", "select_account"}, oauth.CodeInvalidRequest},
		"prompt none":              {[]string{"prompt", "none"}, ""},
		"none with another":        {[]string{"prompt", "none login"}, oauth.CodeInvalidRequest},
		"another with none":        {[]string{"prompt", "consent none"}, oauth.CodeInvalidRequest},
		"two prompts":              {[]string{"prompt", "login consent"}, ""},
		"max_age below 0":          {[]string{"max_age", "-1"}, oauth.CodeInvalidRequest},
		"max_age with a fraction":  {[]string{"max_age", "1.5"}, oauth.CodeInvalidRequest},
		"a great max_age":          {[]string{"max_age", "9999999999"}, ""},
		"an unknown level":         {[]string{"acr_values", "urn:mace:gold"}, oauth.CodeUnmetAuthentication},
		"a known level of two":     {[]string{"acr_values", "urn:mace:gold FULL_TRUST"}, ""},
	} {
		_, err := oauth.ReadRequest(query(c.changes...))
		if f, _ := fault.As(err); (err == nil) != (c.code == "") || f != nil && f.Code != c.code {
			t.Errorf("%s: %v, want the code %q", name, err, c.code)
		}
	}
}

// TestReadRequestReads checks what is read, and that the state is there for an error, too, but never one
// that cannot be sent back.
func TestReadRequestReads(t *testing.T) {
	t.Parallel()
	r, err := oauth.ReadRequest(query("scope", " b a b ", "acr_values", "FULL_TRUST x UNVERIFIED", "max_age", "0",
		"prompt", "login", "login_hint", "Anna@Example.com"))
	want := oauth.Request{
		Challenge: challenge, Resource: "https://wiki.example/mcp", State: "s 1", Scopes: []string{"a", "b"},
		Level: auth.Unverified, Prompt: "login", LoginHint: "anna@example.com",
	}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v and %v, want %+v", r, err, want)
	}
	if r, _ := oauth.ReadRequest(query()); r.MaxAge != -1 || r.Level != 0 {
		t.Errorf("without max_age and acr_values: %v, %v", r.MaxAge, r.Level)
	}
	if r, err := oauth.ReadRequest(query("response_type", "x")); err == nil || r.State != "s 1" {
		t.Errorf("an error with the state %q", r.State)
	}
	if r, err := oauth.ReadRequest(query("+state", "other")); err == nil || r.State != "" {
		t.Errorf("two states are sent back: %q", r.State)
	}
	if r, _ := oauth.ReadRequest(query("max_age", "9999999999")); r.MaxAge < 24*365*10*time.Hour {
		t.Errorf("a great max_age is %v", r.MaxAge)
	}
}

func TestProvesChallenge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verifier, challenge string
		want                bool
	}{
		"its verifier":        {verifier, challenge, true},
		"no verifier":         {"", challenge, false},
		"another one":         {"x" + verifier[1:], challenge, false},
		"the challenge":       {challenge, challenge, false},
		"plain":               {verifier, verifier, false},
		"neither":             {"", "", false},
		"the hash of nothing": {"", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", false},
	} {
		if got := oauth.ProvesChallenge(c.verifier, c.challenge); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNarrowScopes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		requested, there, want []string
		fails                  bool
	}{
		"all by default":        {nil, []string{"read", "write"}, []string{"read", "write"}, false},
		"those that there are":  {[]string{"write", "admin"}, []string{"read", "write"}, []string{"write"}, false},
		"no one is left":        {[]string{"admin"}, []string{"read", "write"}, nil, true},
		"a resource has none":   {[]string{"read"}, nil, nil, true},
		"neither has any":       {nil, nil, nil, false},
		"of the registry":       {[]string{oauth.ScopeRead, oauth.ScopeWrite}, []string{"read"}, []string{"read"}, false},
		"of both":               {[]string{oauth.ScopeRead, "read"}, []string{"read", "write"}, []string{"read"}, false},
		"at the registry":       {[]string{oauth.ScopeRead}, []string{oauth.ScopeRead, oauth.ScopeWrite}, []string{oauth.ScopeRead}, false},
		"a part of a name":      {[]string{"rea"}, []string{"read"}, nil, true},
		"another case of a one": {[]string{"READ"}, []string{"read"}, nil, true},
	} {
		got, err := oauth.NarrowScopes(c.requested, c.there)
		if !reflect.DeepEqual(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}
