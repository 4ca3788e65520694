package oauth_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

var noon = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) int64 { return noon.Add(d).Unix() }

// payload returns claims with others in their place; nil leaves one out.
func payload(t *testing.T, claims map[string]any, changes map[string]any) []byte {
	t.Helper()
	all := maps.Clone(claims)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(all)
	must.Succeed(t, err)
	return text
}

func TestClientAssertions(t *testing.T) {
	t.Parallel()
	const issuer = "https://tollgate.example"
	good := map[string]any{
		"iss": "app", "sub": "app", "aud": issuer, "jti": "1", "iat": at(0), "exp": at(time.Minute),
	}
	for name, c := range map[string]struct {
		changes map[string]any
		ok      bool
	}{
		"for the issuer":          {nil, true},
		"for the token endpoint":  {map[string]any{"aud": issuer + oauth.TokenPath}, true},
		"for a list of one":       {map[string]any{"aud": []string{issuer}}, true},
		"for a list of two":       {map[string]any{"aud": []string{issuer, "https://evil.example"}}, false},
		"for another server":      {map[string]any{"aud": "https://evil.example"}, false},
		"for an address below":    {map[string]any{"aud": issuer + "/"}, false},
		"for no one":              {map[string]any{"aud": nil}, false},
		"of another issuer":       {map[string]any{"iss": "other"}, false},
		"of another subject":      {map[string]any{"sub": "other"}, false},
		"expired":                 {map[string]any{"exp": at(-61 * time.Second)}, false},
		"expired within the skew": {map[string]any{"exp": at(-30 * time.Second), "iat": at(-time.Minute)}, true},
		"five minutes":            {map[string]any{"exp": at(5 * time.Minute)}, true},
		"too long":                {map[string]any{"exp": at(5*time.Minute + time.Second)}, false},
		"too long, without issue": {map[string]any{"exp": at(7 * time.Minute), "iat": nil}, false},
		"without issue":           {map[string]any{"iat": nil}, true},
		"issued later":            {map[string]any{"iat": at(2 * time.Minute), "exp": at(3 * time.Minute)}, false},
		"good later":              {map[string]any{"nbf": at(2 * time.Minute)}, false},
		"a time as a text":        {map[string]any{"exp": "1"}, false},
		"without an end":          {map[string]any{"exp": nil}, false},
		"without a jti":           {map[string]any{"jti": nil}, false},
		"with a number as a jti":  {map[string]any{"jti": 1}, false},
		"with a long jti":         {map[string]any{"jti": strings.Repeat("j", 256)}, false},
	} {
		use, err := oauth.CheckClientAssertion(payload(t, good, c.changes), "app", []string{issuer, issuer + oauth.TokenPath}, noon)
		if f, _ := fault.As(err); (err == nil) != c.ok || f != nil && f.Code != oauth.CodeInvalidClient {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (use.ID != "1" || use.Until.Before(noon)) {
			t.Errorf("%s: used once as %+v", name, use)
		}
	}
	for _, text := range []string{"", "null", "[]", `"app"`} {
		if _, err := oauth.CheckClientAssertion([]byte(text), "app", []string{issuer}, noon); err == nil {
			t.Errorf("%q is an assertion", text)
		}
	}
	body := base64.RawURLEncoding.EncodeToString(payload(t, good, nil))
	for token, want := range map[string]string{"h." + body + ".s": "app", body: "", "h." + body: "", "h.!.s": "", "": ""} {
		if got := oauth.SubjectOf(token); got != want {
			t.Errorf("the subject of %q is %q", token, got)
		}
	}
}

// TestTokensForElsewhere tells tokens of this service for other resources from those for this one, of others and of
// sessions, whose audience is a list.
func TestTokensForElsewhere(t *testing.T) {
	t.Parallel()
	const own = "https://tollgate.example"
	for text, want := range map[string]bool{
		`{"iss":"` + own + `","aud":"https://tools.example"}`:           true,
		`{"iss":"` + own + `","aud":"` + own + `/mcp"}`:                 true,
		`{"iss":"` + own + `","aud":"` + own + `"}`:                     false,
		`{"iss":"` + own + `","aud":["tollgate"]}`:                      false,
		`{"iss":"` + own + `"}`:                                         false,
		`{"iss":"https://other.example","aud":"https://tools.example"}`: false,
		`[]`: false,
	} {
		token := "h." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".s"
		if got := oauth.IsElsewhere(token, own); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	if oauth.IsElsewhere("tgp_token", own) || oauth.IsElsewhere("", own) {
		t.Error("what is no JWT is a token of this service")
	}
}

func TestIdentityAssertions(t *testing.T) {
	t.Parallel()
	good := map[string]any{
		"iss": "https://idp.example", "sub": "7", "aud": "https://tollgate.example", "client_id": "app", "jti": "1",
		"resource": "https://wiki.example/mcp", "iat": at(0), "exp": at(5 * time.Minute),
	}
	for name, c := range map[string]struct {
		changes map[string]any
		ok      bool
	}{
		"whole":                {nil, true},
		"a list of one":        {map[string]any{"aud": []string{"https://tollgate.example"}}, true},
		"a list of two":        {map[string]any{"aud": []string{"https://tollgate.example", "x"}}, false},
		"for another server":   {map[string]any{"aud": "https://other.example"}, false},
		"to another client":    {map[string]any{"client_id": "other"}, false},
		"to no client":         {map[string]any{"client_id": nil}, false},
		"without issue":        {map[string]any{"iat": nil}, false},
		"too long":             {map[string]any{"exp": at(11 * time.Minute)}, false},
		"ten minutes":          {map[string]any{"exp": at(10 * time.Minute)}, true},
		"old":                  {map[string]any{"iat": at(-time.Hour), "exp": at(-55 * time.Minute)}, false},
		"old and too long":     {map[string]any{"iat": at(-time.Hour)}, false},
		"without a subject":    {map[string]any{"sub": ""}, false},
		"without an id":        {map[string]any{"jti": nil}, false},
		"without a resource":   {map[string]any{"resource": nil}, true},
		"one resource in list": {map[string]any{"resource": []string{"https://wiki.example/mcp"}}, true},
		"two resources":        {map[string]any{"resource": []string{"https://wiki.example/mcp", "https://b.example"}}, false},
		"scopes":               {map[string]any{"scope": "read write"}, true},
		"no scope":             {map[string]any{"scope": ""}, true},
		"scopes as a list":     {map[string]any{"scope": []string{"read"}}, false},
		"a scope that is none": {map[string]any{"scope": "a\nb"}, false},
	} {
		_, err := oauth.CheckIDJAG(payload(t, good, c.changes), "app", "https://tollgate.example", noon)
		if f, _ := fault.As(err); (err == nil) != c.ok || f != nil && f.Code != oauth.CodeInvalidGrant {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := oauth.CheckIDJAG(payload(t, good, map[string]any{"scope": "b a"}), "app", "https://tollgate.example", noon)
	want := oauth.IDJAG{
		One: oauth.One{ID: "1", Until: noon.Add(6 * time.Minute)}, Resource: "https://wiki.example/mcp",
		Scopes: []string{"a", "b"}, Limited: true,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and %v", got, err)
	}
}
