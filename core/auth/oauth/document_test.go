package oauth_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

const documentURL = "https://client.example.com/mcp.json"

// documentText returns a good document, changed by changes; nil removes a member.
func documentText(t *testing.T, changes map[string]any) string {
	t.Helper()
	members := map[string]any{
		"client_id": documentURL, "client_name": "Example", "redirect_uris": []string{"http://127.0.0.1/callback"},
		"grant_types": []string{"authorization_code"}, "logo_uri": 7,
	}
	maps.Copy(members, changes)
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(members)
	must.Succeed(t, err)
	return string(text)
}

func publicKey() map[string]any {
	return map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "1"}
}

func keysWith(changes map[string]any) map[string]any {
	key := publicKey()
	maps.Copy(key, changes)
	return map[string]any{"keys": []any{publicKey(), key}}
}

func TestParseDocument(t *testing.T) {
	private := map[string]any{"token_endpoint_auth_method": "private_key_jwt"}
	with := func(name string, value any) map[string]any {
		changed := maps.Clone(private)
		changed[name] = value
		return changed
	}
	many := strings.Split(strings.TrimSuffix(strings.Repeat("https://client.example.com/back ", 20), " "), " ")
	want := oauth.Client{
		ID: documentURL, Name: "Example", RedirectURIs: []string{"http://127.0.0.1/callback"}, Method: oauth.MethodNone,
	}
	for name, c := range map[string]struct {
		changes map[string]any
		want    func(*oauth.Client)
	}{
		"a public client":        {nil, func(*oauth.Client) {}},
		"a method that is named": {map[string]any{"token_endpoint_auth_method": "none", "jwks": keysWith(nil)}, func(*oauth.Client) {}},
		"20 redirect URIs":       {map[string]any{"redirect_uris": many}, func(c *oauth.Client) { c.RedirectURIs = many }},
		"redirect URIs on the computer": {
			map[string]any{"redirect_uris": []string{"http://localhost", "http://[::1]:80/a?b=c"}},
			func(c *oauth.Client) { c.RedirectURIs = []string{"http://localhost", "http://[::1]:80/a?b=c"} },
		},
		"a name of 200 characters": {
			map[string]any{"client_name": strings.Repeat("ü", 200)}, func(c *oauth.Client) { c.Name = strings.Repeat("ü", 200) },
		},
		"keys elsewhere": {with("jwks_uri", "https://keys.example.com/jwks?a=b"), func(c *oauth.Client) {
			c.Method, c.JWKSURI = oauth.MethodPrivateKey, "https://keys.example.com/jwks?a=b"
		}},
		"keys": {with("jwks", map[string]any{"keys": []any{publicKey()}}), func(c *oauth.Client) {
			c.Method, c.JWKS = oauth.MethodPrivateKey, `{"keys":[{"crv":"Ed25519","kid":"1","kty":"OKP","x":"AA"}]}`
		}},
	} {
		want := want
		c.want(&want)
		got, err := oauth.ParseDocument(documentURL, []byte(documentText(t, c.changes)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestRefusedDocuments(t *testing.T) {
	method := func(name, member string, value any) map[string]any {
		return map[string]any{"token_endpoint_auth_method": name, member: value}
	}
	redirects := func(uris ...any) map[string]any { return map[string]any{"redirect_uris": uris} }
	documents := map[string]string{
		"nothing": "", "HTML": "<html>", "null": "null", "a list": "[]", "two objects": documentText(t, nil) + "{}",
		"an id that is there twice": strings.Replace(documentText(t, nil), "{", `{"client_id":"`+documentURL+`",`, 1),
		"an id in another spelling": strings.Replace(documentText(t, nil), "{", `{"client\u005fid":"https://evil.example.com/",`, 1),
		"keys that are there twice": documentText(t, method("private_key_jwt", "jwks", json.RawMessage(
			`{"keys":[{"kty":"OKP","kid":"1","kid":"2"}]}`))),
	}
	for name, changes := range map[string]map[string]any{
		"no id": {"client_id": nil}, "another id": {"client_id": documentURL + "/"}, "an id that is a list": {"client_id": []string{documentURL}},
		"an id in upper case": {"client_id": "https://Client.example.com/mcp.json"},
		"no name":             {"client_name": nil}, "an empty name": {"client_name": ""}, "a name of a number": {"client_name": 7},
		"a long name":             {"client_name": strings.Repeat("ü", 201)},
		"a name of several lines": {"client_name": "a\nb"},
		"no redirect URIs":        {"redirect_uris": nil}, "an empty list": redirects(), "a text in place of a list": {"redirect_uris": "https://a.example"},
		"21 redirect URIs": redirects(make([]any, 21)...), "a redirect URI of a number": redirects("https://a.example/", 7),
		"http elsewhere": redirects("http://client.example.com/"), "another scheme": redirects("client:/back"),
		"javascript": redirects("javascript:alert(1)"), "a fragment": redirects("https://a.example/#x"), "a user": redirects("https://a@b.example/"),
		"no host": redirects("https:///x"), "a space": redirects("https://a.example/ x"), "a name like localhost": redirects("http://localhost.example/"),
		"a user on localhost": redirects("http://localhost:1@a.example/"), "a backslash": redirects(`https://a.example\@b.example/`),
		"a long one":              redirects("https://a.example/" + strings.Repeat("a", 2048)),
		"a secret":                {"client_secret": "x"},
		"an empty secret":         {"client_secret": nil, "client_secret_expires_at": 0},
		"a secret that is null":   {"client_secret": json.RawMessage("null")},
		"client_secret_basic":     {"token_endpoint_auth_method": "client_secret_basic"},
		"client_secret_post":      {"token_endpoint_auth_method": "client_secret_post"},
		"client_secret_jwt":       {"token_endpoint_auth_method": "client_secret_jwt"},
		"tls_client_auth":         {"token_endpoint_auth_method": "tls_client_auth"},
		"an empty method":         {"token_endpoint_auth_method": ""},
		"a method that is null":   {"token_endpoint_auth_method": json.RawMessage("null")},
		"no keys":                 {"token_endpoint_auth_method": "private_key_jwt"},
		"keys twice":              {"token_endpoint_auth_method": "private_key_jwt", "jwks": keysWith(nil), "jwks_uri": "https://a.example/"},
		"keys over http":          method("private_key_jwt", "jwks_uri", "http://a.example/"),
		"keys over http here":     method("private_key_jwt", "jwks_uri", "http://127.0.0.1/"),
		"keys with a user":        method("private_key_jwt", "jwks_uri", "https://a@b.example/"),
		"keys at a number":        method("private_key_jwt", "jwks_uri", 7),
		"an empty set":            method("private_key_jwt", "jwks", map[string]any{"keys": []any{}}),
		"a set that is a text":    method("private_key_jwt", "jwks", `{"keys":[]}`),
		"a key that is a text":    method("private_key_jwt", "jwks", map[string]any{"keys": []any{"x", publicKey()}}),
		"a private key":           method("private_key_jwt", "jwks", keysWith(map[string]any{"d": "AA"})),
		"a symmetric key":         method("private_key_jwt", "jwks", keysWith(map[string]any{"kty": "oct", "k": "AA"})),
		"a key of another type":   method("private_key_jwt", "jwks", keysWith(map[string]any{"kty": "oct"})),
		"a private key by itself": {"jwks": keysWith(map[string]any{"d": "AA"})},
	} {
		documents[name] = documentText(t, changes)
	}
	for name, text := range documents {
		got, err := oauth.ParseDocument(documentURL, []byte(text))
		if !fault.Is(err, fault.Invalid) || !reflect.DeepEqual(got, oauth.Client{}) {
			t.Errorf("%s: %+v, %v; want fault.Invalid: %s", name, got, err, text)
		}
	}
}
