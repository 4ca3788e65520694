package company_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// newAccessProviders returns two providers of one issuer with audiences, and one of another without.
func newAccessProviders(t *testing.T) []company.Provider {
	t.Helper()
	first, second, third := newFields(), newFields(), newFields()
	first["audiences"] = audit.Texts([]string{"api", "https://tools.example/"})
	second["name"], second["audiences"], second["scopeClaim"] = audit.Text("second"), audit.Texts([]string{"other"}), audit.Text("scp")
	third["name"], third["issuer"] = audit.Text("third"), audit.Text("https://login.third.example")
	return []company.Provider{*mustParse(t, third), *mustParse(t, first), *mustParse(t, second)}
}

func TestFindForAccess(t *testing.T) {
	t.Parallel()
	all := newAccessProviders(t)
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, test := range map[string]struct {
		claims   map[string]any
		provider company.Name
		reason   fault.Code
	}{
		"good":                          {nil, "acme", ""},
		"one of several audiences":      {map[string]any{"aud": []string{"x", "https://tools.example/"}}, "acme", ""},
		"the audience of the other":     {map[string]any{"aud": "other"}, "second", ""},
		"an ID token":                   {map[string]any{"aud": "tollgate", "nonce": "n"}, "", "audience"},
		"no audience":                   {map[string]any{"aud": nil}, "", "audience"},
		"an empty audience":             {map[string]any{"aud": ""}, "", "audience"},
		"an audience in other case":     {map[string]any{"aud": "API"}, "", "audience"},
		"part of an audience":           {map[string]any{"aud": "https://tools.example/x"}, "", "audience"},
		"an audience of numbers":        {map[string]any{"aud": []any{"api", 1}}, "", "audience"},
		"an object as the audience":     {map[string]any{"aud": map[string]any{"api": "api"}}, "", "audience"},
		"no subject":                    {map[string]any{"sub": nil}, "", "subject"},
		"a subject that is a number":    {map[string]any{"sub": 1}, "", "subject"},
		"a NUL in the subject":          {map[string]any{"sub": "a\x00"}, "", "subject"},
		"256 bytes of subject":          {map[string]any{"sub": strings.Repeat("s", 256)}, "", "subject"},
		"expired for less than 60 s":    {map[string]any{"exp": at(-59 * time.Second)}, "acme", ""},
		"expired for 60 s":              {map[string]any{"exp": at(-time.Minute)}, "", "expired"},
		"no end":                        {map[string]any{"exp": nil}, "", "expired"},
		"an end that is a text":         {map[string]any{"exp": "9999999999"}, "", "expired"},
		"an end without end":            {map[string]any{"exp": 1e30}, "", "expired"},
		"issued in 60 s":                {map[string]any{"iat": at(time.Minute)}, "acme", ""},
		"issued later":                  {map[string]any{"iat": at(time.Minute + time.Second)}, "", "issued_at"},
		"no time of issue":              {map[string]any{"iat": nil}, "", "issued_at"},
		"not valid before 61 s":         {map[string]any{"nbf": at(61 * time.Second)}, "", "not_before"},
		"not before a text":             {map[string]any{"nbf": "0"}, "", "not_before"},
		"a logout token":                {map[string]any{"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}, "", "type"},
		"an issuer without audiences":   {map[string]any{"iss": "https://login.third.example"}, "", "not_found"},
		"an issuer with a slash":        {map[string]any{"iss": "https://login.acme.example/"}, "", "not_found"},
		"an issuer that is a list":      {map[string]any{"iss": []string{"https://login.acme.example"}}, "", "not_found"},
		"no issuer":                     {map[string]any{"iss": nil}, "", "not_found"},
		"a nonce, an azp, another acr":  {map[string]any{"nonce": "x", "azp": "x", "acr": "x"}, "acme", ""},
		"a nonce for the client":        {map[string]any{"nonce": "x", "aud": []string{"tollgate", "api"}}, "", "type"},
		"the same with a scope":         {map[string]any{"nonce": "x", "aud": []string{"tollgate", "api"}, "scp": "a"}, "acme", ""},
		"the hash of an access token":   {map[string]any{"at_hash": "x", "scope": "a"}, "", "type"},
		"the hash of a code":            {map[string]any{"c_hash": "x", "scope": "a"}, "", "type"},
		"an ID token of Cognito":        {map[string]any{"token_use": "id", "scope": "a"}, "", "type"},
		"an access token of Cognito":    {map[string]any{"token_use": "access"}, "acme", ""},
		"an ID token of Keycloak":       {map[string]any{"typ": "ID", "scope": "a"}, "", "type"},
		"an access token of Keycloak":   {map[string]any{"typ": "Bearer"}, "acme", ""},
		"no e-mail address, no groups":  {map[string]any{"email": nil}, "acme", ""},
		"the client beside an audience": {map[string]any{"aud": []string{"tollgate", "api"}}, "acme", ""},
	} {
		claims := map[string]any{"aud": "api", "nonce": nil}
		for name, value := range test.claims {
			claims[name] = value
		}
		p, _, err := company.FindForAccess(all, newClaims(claims), now)
		f, _ := fault.As(err)
		switch {
		case test.reason == "not_found":
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v, want fault.NotFound", name, err)
			}
		case test.reason != "":
			if !fault.Is(err, fault.Unauthenticated) || f.Code != test.reason {
				t.Errorf("%s: %v, want the reason %s", name, err, test.reason)
			}
		case err != nil || p.Name != test.provider:
			t.Errorf("%s: %v, error %v, want %s", name, p, err, test.provider)
		}
	}
	for _, text := range []string{"", "null", "[]", `"x"`, "{", `{"iss":1}x`} {
		if _, _, err := company.FindForAccess(all, []byte(text), now); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestAudienceSpellings checks that an audience is the same resource (RFC 8707) in the spellings that clients
// send, of which Claude Code adds a slash to an address without a path, and that nothing else is: neither
// another address nor another text that is no address.
func TestAudienceSpellings(t *testing.T) {
	t.Parallel()
	for own, spellings := range map[string]struct{ same, other []string }{
		"https://tools.example": {
			[]string{"https://tools.example/", "HTTPS://Tools.EXAMPLE", "https://tools.example:443", "https://tools.example:443/"},
			[]string{
				"https://tools.example//", "http://tools.example", "https://tools.example:80", "https://tools.example:8443",
				"https://tools.example/mcp", "https://tools.example?", "https://tools.example/?x", "https://tools.example#", "https://tools.example./",
				"https://x@tools.example", "https://tools.example:443@evil.example", "https://tools.example:", "https://tools.example:0443",
				"https://evil.example", "https://tools.example.evil.example", "tools.example", "//tools.example", " https://tools.example", "https:tools.example",
				`https://tools.example\`, "https://tools.example%2F", "https://tools.example\x00",
			},
		},
		"HTTP://Tools.Example:80/MCP/": {
			[]string{"http://tools.example/MCP", "http://tools.example:80/MCP/"},
			[]string{"http://tools.example/mcp", "http://tools.example/MCP//", "http://tools.example/MCP%2F", "https://tools.example/MCP", "http://tools.example:443/MCP"},
		},
		"https://k.example/a?b": {
			[]string{"https://k.example/a/?b", "https://K.example:443/a?b"},
			[]string{"https://\u212a.example/a?b", "https://k.example/a?B", "https://k.example/a?b/", "https://k.example/A?b"},
		},
		"https://[2001:db8::a]:443/": {[]string{"https://[2001:DB8::A]"}, []string{"https://[2001:db8::a]:80/"}},
		"api":                        {[]string{"api"}, []string{"API", "api/", "https://api"}},
		"api://Example/":             {[]string{"api://Example/"}, []string{"api://example/", "api://Example"}},
		"urn:example:API":            {nil, []string{"urn:example:api", "URN:example:API", "urn:example:API/"}},
		"https://":                   {[]string{"https://"}, []string{"https:///", "HTTPS://", "https://:443"}},
		"https://user@tools.example": {nil, []string{"https://user@tools.example/", "https://tools.example"}},
	} {
		fields := newFields()
		fields["audiences"] = audit.Texts([]string{own})
		all := []company.Provider{*mustParse(t, fields)}
		for _, aud := range append(spellings.same, own) {
			if _, _, err := company.FindForAccess(all, newClaims(map[string]any{"aud": aud}), now); err != nil {
				t.Errorf("%q for %q: %v", aud, own, err)
			}
		}
		for _, aud := range spellings.other {
			if _, _, err := company.FindForAccess(all, newClaims(map[string]any{"aud": aud}), now); err == nil {
				t.Errorf("%q counts for %q", aud, own)
			}
		}
	}
}

// TestAudienceIsNecessary checks that whatever a token says, it is accepted only with an audience and by
// an issuer that an operator has named, and while it lasts.
func TestAudienceIsNecessary(t *testing.T) {
	t.Parallel()
	all := newAccessProviders(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"api", "other", "tollgate", "", "https://login.acme.example", "https://login.third.example", "x"})
		aud := rapid.SliceOfN(text, 0, 3).Draw(t, "aud")
		issuer, ends := text.Draw(t, "iss"), rapid.IntRange(-200, 200).Draw(t, "exp")
		payload := newClaims(map[string]any{
			"aud": aud, "iss": issuer, "nonce": nil, "exp": now.Add(time.Duration(ends) * time.Second).Unix(),
		})
		named := false
		for _, a := range aud {
			named = named || a == "api" || a == "other"
		}
		p, c, err := company.FindForAccess(all, payload, now)
		if want := named && issuer == "https://login.acme.example" && ends > -60; (err == nil) != want {
			t.Fatalf("%s: provider %v, error %v, want %t", payload, p, err, want)
		}
		if err == nil && c.Subject != "u1" {
			t.Fatalf("the claims are %+v", c)
		}
	})
}

func TestHasScope(t *testing.T) {
	t.Parallel()
	all := newAccessProviders(t)
	const scope = "mcp-registry:read"
	for _, test := range []struct {
		aud    string
		claims map[string]any
		want   bool
	}{
		{"api", map[string]any{"scope": scope}, true},
		{"api", map[string]any{"scope": "openid " + scope + " x"}, true},
		{"api", map[string]any{"scope": []string{"openid", scope}}, true},
		{"api", map[string]any{"scope": []any{1, nil, map[string]any{}, []string{scope}}}, false},
		{"api", map[string]any{"scope": []string{"openid " + scope}}, false},
		{"api", map[string]any{"scope": scope + "s"}, false},
		{"api", map[string]any{"scope": "mcp-registry:write"}, false},
		{"api", map[string]any{"scope": map[string]any{scope: true}}, false},
		{"api", map[string]any{"scp": scope}, false},
		{"other", map[string]any{"scp": []string{scope}}, true},
		{"other", map[string]any{"scope": scope}, false},
		{"api", nil, false},
	} {
		claims := map[string]any{"aud": test.aud}
		for name, value := range test.claims {
			claims[name] = value
		}
		p, c, err := company.FindForAccess(all, newClaims(claims), now)
		if err != nil || c.HasScope(p, scope) != test.want {
			t.Errorf("%v: error %v, want %t", test.claims, err, test.want)
		}
	}
}

// TestFindVerified checks that a payload which somebody else has verified needs an issuer that is a
// provider's, and must not have expired.
func TestFindVerified(t *testing.T) {
	t.Parallel()
	all := newAccessProviders(t)
	for name, test := range map[string]struct {
		claims   map[string]any
		provider company.Name
	}{
		"the first of its issuer": {map[string]any{"aud": "x"}, "acme"},
		"by its audience":         {map[string]any{"aud": "other"}, "second"},
		"without audiences":       {map[string]any{"iss": "https://login.third.example", "iat": nil}, "third"},
		"no end":                  {map[string]any{"exp": nil}, "acme"},
		"expired":                 {map[string]any{"exp": now.Add(-time.Minute).Unix()}, ""},
		"no subject":              {map[string]any{"sub": nil}, ""},
		"another issuer":          {map[string]any{"iss": "https://login.other.example"}, ""},
	} {
		p, _, err := company.FindVerified(all, newClaims(test.claims), now)
		if (err == nil) != (test.provider != "") || err == nil && p.Name != test.provider {
			t.Errorf("%s: %v, error %v", name, p, err)
		}
	}
}

// TestAudiences checks the fields of providers about access tokens.
func TestAudiences(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]audit.Value{
		"audiences": audit.Texts(strings.Split(strings.Repeat("a,", 21), ",")), "audiences[1]": audit.Texts([]string{"a", "a"}),
		"audiences[0]": audit.Texts([]string{""}), "scopeClaim": audit.Text(strings.Repeat("é", 256)),
	} {
		fields := newFields()
		name, _, _ := strings.Cut(field, "[")
		fields[name] = value
		if _, err := company.Parse(fields); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	p := mustParse(t, newFields())
	if text, err := json.Marshal(p.Fields()); err != nil || p.ScopeClaim != "scope" || p.Audiences != nil || strings.Contains(string(text), "audiences") {
		t.Errorf("the provider is %s, error %v", text, err)
	}
}
