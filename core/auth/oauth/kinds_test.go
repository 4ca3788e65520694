package oauth_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestCheckRedirectURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{ // "both", "registered" clients only, or neither
		"https://ide.example.com/callback": "both", "https://ide.example.com:8443/a?b=c": "both", "http://localhost/": "both",
		"http://127.0.0.1:33418/callback": "both", "http://[::1]:1/x": "both", "cursor://anysphere.cursor/callback": "registered",
		"com.example.app:/oauth": "registered", "vscode://x.y/z": "registered",
		"javascript:alert(1)": "", "javascript://localhost/%0aalert(1)": "", "data:text/html,x": "", "vbscript:x": "", "file:///etc/passwd": "",
		"blob:https://a.example/1": "", "JavaScript:alert(1)": "", "HTTPS://ide.example.com/": "", "Cursor://x/y": "",
		"https://ide.example.com/#": "", "https://ide.example.com/#a": "", "cursor://x/y#a": "", "https://a@ide.example.com/": "",
		"http://localhost@evil.example/": "", "cursor://a:b@x/y": "",
		"http://localhost.evil.example/": "", "http://127.0.0.1.evil.example/": "", "http://127.0.0.2/": "", "http://localhost./": "",
		"http://[::1].evil.example/": "", "http://[127.0.0.1]/": "", "http://0x7f000001/": "", "http://ide.example.com/": "", "http://LOCALHOST/": "",
		"https:///callback": "", "https://": "", "https:ide.example.com": "", "//ide.example.com/": "", "/callback": "", "": "", "cursor:": "",
		"https://ide.example.com\\@evil.example/": "", "https://ide.example.com/a b": "", "https://ide.example.com/\n": "", "https://ide.example.com/é": "",
		" https://ide.example.com/": "", "java\tscript:alert(1)": "", "https://ide.example.com:99x/": "",
		"https://ide.example.com/" + strings.Repeat("a", 2048-24): "both", "https://ide.example.com/" + strings.Repeat("a", 2048-23): "",
	} {
		registered, other := oauth.CheckRedirectURI(uri, true), oauth.CheckRedirectURI(uri, false)
		if (registered == nil) != (want != "") || (other == nil) != (want == "both") {
			t.Errorf("%.80q: %v and %v, want %q", uri, registered, other, want)
		}
	}
}

func TestParseClientID(t *testing.T) {
	t.Parallel()
	for id, good := range map[string]bool{
		"ide": true, "com.example_IDE~1-x": true, strings.Repeat("a", 200): true, "https://ide.example.com/client.json": true,
		"https://ide.example.com:8443/": true,
		"":                              false, strings.Repeat("a", 201): false, ".": false, "..": false, ".a": false, "a/b": false, "a b": false, "a:b": false,
		"http://ide.example.com/client.json": false, "https://ide.example.com": false, "https:///client.json": false, "https://ide.example.com/?a": false,
		"https://ide.example.com/a?b": false, "https://ide.example.com/a#": false, "https://a@ide.example.com/b": false, "https://ide.example.com/a/../b": false,
		"https://ide.example.com/./b": false, "https://ide.example.com/%2e%2E/b": false, "https://ide.example.com/a\\b": false,
		"https://ide.example.com/" + strings.Repeat("a", 2048): false,
	} {
		if _, err := oauth.ParseClientID(id); (err == nil) != good || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%.80q: %v", id, err)
		}
	}
}

const publicKeys = `{"keys":[{"crv":"Ed25519","kid":"1","kty":"OKP","x":"AQ"},{"e":"AQAB","key_ops":["verify"],"kty":"RSA","n":"AQ"}]}`

func texts(all ...string) audit.List { return audit.Texts(all) }

func clientFields(others audit.Details) audit.Details {
	all := audit.Details{"clientId": audit.Text("ide"), "name": audit.Text("IDE"), "redirectUris": texts("http://127.0.0.1/cb", "cursor://x/y")}
	maps.Copy(all, others)
	return all
}

func resourceFields(others audit.Details) audit.Details {
	all := audit.Details{
		"name": audit.Text("weather"), "url": audit.Text("https://weather.example.com/mcp"), "servers": texts("com.example/weather"),
	}
	maps.Copy(all, others)
	return all
}

// stored returns fields as a store has them.
func stored(t *testing.T, fields audit.Details) (read audit.Details) {
	t.Helper()
	text, err := json.Marshal(fields)
	must.Succeed(t, err)
	must.Succeed(t, json.Unmarshal(text, &read))
	return read
}

func TestClient(t *testing.T) {
	t.Parallel()
	var object audit.Details
	must.Succeed(t, json.Unmarshal([]byte(publicKeys), &object))
	for _, fields := range []audit.Details{
		clientFields(nil),
		clientFields(audit.Details{"method": audit.Text("private_key_jwt"), "jwks": object, "resources": texts("weather"), "consent": audit.Text("skip")}),
		clientFields(audit.Details{"method": audit.Text("private_key_jwt"), "jwks": audit.Text(" " + publicKeys)}),
		clientFields(audit.Details{"method": audit.Text("private_key_jwt"), "jwksUri": audit.Text("https://ide.example.com/keys?a")}),
		clientFields(audit.Details{"method": audit.Text("client_secret_basic")}),
	} {
		first, err := oauth.ParseClient(fields)
		must.Succeed(t, err)
		if first.Method.HasSecret() {
			first.SecretHash = auth.HashSecret(auth.ClientSecret("x"))
		}
		second, err := oauth.ReadClient(stored(t, first.Object().Fields))
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%+v became %+v, %v", first, second, err)
		}
		if given := fields["jwks"]; given != nil && second.JWKS != publicKeys {
			t.Errorf("the keys %v are %s", given, second.JWKS)
		}
		if _, shown := first.Fields()[audit.FieldSecret]; shown {
			t.Error("the fields of a client have its secret")
		}
	}
	if c, err := oauth.ParseClient(clientFields(nil)); err != nil || c.Method != oauth.MethodNone || c.SkipConsent {
		t.Errorf("the defaults are %+v, %v", c, err)
	}
	c, err := oauth.ParseClient(clientFields(audit.Details{audit.FieldSecret: audit.Text(strings.Repeat("00", 31) + "01")}))
	if err != nil || c.HasSecret() {
		t.Errorf("who describes a client sets the hash of its secret: %+v, %v", c, err)
	}
}

// many returns so many texts.
func many(n int, format string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

func TestWrongClients(t *testing.T) {
	t.Parallel()
	withKeys := func(keys string) audit.Details {
		return audit.Details{"method": audit.Text("private_key_jwt"), "jwks": audit.Text(keys)}
	}
	for _, c := range []struct {
		field string
		given audit.Details
	}{
		{"clientId", audit.Details{"clientId": audit.Text("https://ide.example.com/x")}},
		{"clientId", audit.Details{"clientId": nil}},
		{"name", audit.Details{"name": audit.Text("")}},
		{"name", audit.Details{"name": audit.Text(strings.Repeat("é", 201))}},
		{"redirectUris", audit.Details{"redirectUris": texts()}},
		{"redirectUris", audit.Details{"redirectUris": texts(many(21, "https://ide.example.com/%d")...)}},
		{"redirectUris[0]", audit.Details{"redirectUris": texts("javascript:alert(1)")}},
		{"redirectUris[1]", audit.Details{"redirectUris": texts("https://a.example/", "https://a.example/")}},
		{"method", audit.Details{"method": audit.Text("client_secret_jwt")}},
		{"jwks", audit.Details{"method": audit.Text("private_key_jwt")}},
		{"jwks", audit.Details{"jwks": audit.Text(publicKeys)}},
		{"jwks", audit.Details{"method": audit.Text("private_key_jwt"), "jwks": audit.Text(publicKeys), "jwksUri": audit.Text("https://a.example/")}},
		{"jwksUri", audit.Details{"method": audit.Text("client_secret_post"), "jwksUri": audit.Text("https://a.example/")}},
		{"jwksUri", audit.Details{"method": audit.Text("private_key_jwt"), "jwksUri": audit.Text("http://localhost/")}},
		{"jwksUri", audit.Details{"method": audit.Text("private_key_jwt"), "jwksUri": audit.Text("https://a@b.example/")}},
		{"jwks", withKeys(`[]`)},
		{"jwks", withKeys(`{"keys":[]}`)},
		{"jwks", withKeys(`{"keys":[7]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"oct","k":"AQ"}]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"EC","crv":"P-256","x":"AQ"}]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ","d":"AQ"}]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB","p":"AQ"}]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB","k":"AQ"}]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ","kid":"\u0000"}]}`)},
		{"jwks", withKeys(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + strings.Repeat("A", 64<<10) + `"}]}`)},
		{"resources[0]", audit.Details{"resources": texts("Weather")}},
		{"consent", audit.Details{"consent": audit.Text("never")}},
		{"newSecret", audit.Details{"newSecret": audit.Flag(true)}},
	} {
		_, err := oauth.ParseClient(clientFields(c.given))
		if f, _ := fault.As(err); !fault.Is(err, fault.Invalid) || f.Field != c.field {
			t.Errorf("%.100v: %v, want a mistake in %s", c.given, err, c.field)
		}
	}
}

func TestResource(t *testing.T) {
	t.Parallel()
	all := resourceFields(audit.Details{
		"scopes": texts("forecast:read", "x"), "introspectors": texts("service:gateway"), "tokenTtl": audit.Number(60),
		"minTrust": audit.Text("FULL_TRUST"), "clients": texts("ide", "https://claude.ai/client.json"), "refresh": audit.Flag(false),
	})
	for _, fields := range []audit.Details{resourceFields(nil), all} {
		first, err := oauth.ParseResource(fields)
		must.Succeed(t, err)
		second, err := oauth.ParseResource(stored(t, first.Fields()))
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%+v became %+v, %v", first, second, err)
		}
	}
	r, err := oauth.ParseResource(resourceFields(nil))
	if err != nil || r.TokenTTL != oauth.DefaultTokenTTL || r.MinTrust != auth.LimitedTrust || !r.Refresh {
		t.Errorf("the defaults are %+v, %v", r, err)
	}
	r, err = oauth.ParseResource(all)
	if err != nil || r.TokenTTL != oauth.MinTokenTTL || r.Refresh || r.Introspectors[0] != "gateway" {
		t.Errorf("the resource is %+v, %v", r, err)
	}
}

func TestWrongResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field string
		value audit.Value
	}{
		{"name", audit.Text("Weather")},
		{"url", nil},
		{"url", audit.Text("http://weather.example.com/")},
		{"url", audit.Text("http://localhost.evil.example/")},
		{"url", audit.Text("https://weather.example.com/#a")},
		{"url", audit.Text("https://a@weather.example.com/")},
		{"url", audit.Text("https:///mcp")},
		{"url", audit.Text("https://weather.example.com/{tenant}")},
		{"url", audit.Text("https://weather.example.com/" + strings.Repeat("a", 2048))},
		{"servers", texts()},
		{"servers", texts(many(21, "com.example/a%d")...)},
		{"servers[0]", texts("com.example/*")},
		{"servers[1]", texts("com.example/a", "com.example/a")},
		{"scopes[0]", texts("a b")},
		{"scopes[0]", texts(`a"b`)},
		{"scopes", texts(many(101, "s%d")...)},
		{"scopes", texts(many(40, strings.Repeat("s", 250)+"%d")...)}, // each token has them
		{"introspectors[0]", texts("gateway")},
		{"introspectors[0]", texts("person:a@example.com")},
		{"introspectors", texts(many(11, "service:s%d")...)},
		{"tokenTtl", audit.Number(59)},
		{"tokenTtl", audit.Number(3601)},
		{"tokenTtl", audit.Number(60.5)},
		{"tokenTtl", audit.Text("600")},
		{"minTrust", audit.Text("SOME_TRUST")},
		{"clients[0]", texts("https://claude.ai")},
	} {
		_, err := oauth.ParseResource(resourceFields(audit.Details{c.field[:len(c.field)-len(index(c.field))]: c.value}))
		if f, _ := fault.As(err); !fault.Is(err, fault.Invalid) || f.Field != c.field {
			t.Errorf("%s %.100v: %v, want a mistake in it", c.field, c.value, err)
		}
	}
}

// index returns what follows the name of a field.
func index(field string) string {
	if i := strings.IndexByte(field, '['); i >= 0 {
		return field[i:]
	}
	return ""
}
