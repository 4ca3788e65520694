package registryclient

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func environment(value string) func(string) string {
	return func(name string) string {
		if name == Variable {
			return value
		}
		return ""
	}
}

func TestOpenRefusesAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"no JSON":                  `hunter2`,
		"no list":                  `{"baseUrl":"https://packages.example.com","password":"hunter2"}`,
		"number":                   `[{"baseUrl":"https://packages.example.com","password":"hunter2","token":2}]`,
		"no base URL":              `[{"token":"hunter2"}]`,
		"relative":                 `[{"baseUrl":"packages.example.com/hunter2","token":"hunter2"}]`,
		"user in it":               `[{"baseUrl":"https://ada:hunter2@packages.example.com"}]`,
		"query":                    `[{"baseUrl":"https://packages.example.com?token=hunter2"}]`,
		"fragment":                 `[{"baseUrl":"https://packages.example.com#hunter2"}]`,
		"scheme":                   `[{"baseUrl":"ftp://packages.example.com","token":"hunter2"}]`,
		"dot segments":             `[{"baseUrl":"https://packages.example.com/a/../b","token":"hunter2"}]`,
		"password alone":           `[{"baseUrl":"https://packages.example.com","password":"hunter2"}]`,
		"username alone":           `[{"baseUrl":"https://packages.example.com","username":"hunter2"}]`,
		"both kinds":               `[{"baseUrl":"https://packages.example.com","username":"a","password":"b","token":"hunter2"}]`,
		"colon in a username":      `[{"baseUrl":"https://packages.example.com","username":"a:hunter2","password":"b"}]`,
		"line break in a token":    `[{"baseUrl":"https://packages.example.com","token":"hunter2\r\nX: y"}]`,
		"credentials in the clear": `[{"baseUrl":"http://packages.example.com","token":"hunter2"}]`,
		"too long":                 strings.Repeat(" ", maxVariable) + "hunter2",
	} {
		_, err := Open(Config{Environment: environment(value)})
		if err == nil || !strings.Contains(err.Error(), Variable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Open = %v, want an error that names the variable and shows no secret", name, err)
		}
	}
	for _, raw := range []string{
		"", "http://packages.example.com", "packages.example.com", "https://packages.example.com?x",
	} {
		if _, err := Open(Config{Defaults: []string{raw}}); err == nil {
			t.Errorf("default %q is accepted", raw)
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s", Credentials{Token: "hunter2"}, Credentials{Token: "hunter2"}, Credentials{
		Token: "hunter2",
	},
		Credentials{Token: "hunter2"}); strings.Contains(got, "hunter2") {
		t.Errorf("credentials print as %s", got)
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	c, err := Open(Config{
		Defaults: []string{"https://packages.example.com", "https://www.example.com/packages"},
		Environment: environment(`[{"baseUrl":"https://Private.example:8443/npm/","token":"t"},{"baseUrl":"http://10.0.0.1/x"},` +
			`{"baseUrl":"https://www.example.com/packages","token":"u"}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for claimed, want := range map[string]string{
		"":                                  "https://packages.example.com",
		"https://packages.example.com":      "https://packages.example.com",
		"HTTPS://PACKAGES.example.com:443/": "https://packages.example.com",
		"https://www.example.com/packages/": "https://www.example.com/packages",
		"https://private.example:8443/npm":  "https://private.example:8443/npm",
		"http://10.0.0.1:80/x":              "http://10.0.0.1/x",
	} {
		if b, err := c.Base(claimed); err != nil || b.URL() != want {
			t.Errorf("Base(%q) = %v, %v, want %q", claimed, b, err, want)
		}
	}
	for _, claimed := range []string{
		"https://elsewhere.example", "http://packages.example.com", "https://packages.example.com:444",
		"https://packages.example.com/x",
		"https://packages.example.com@elsewhere.example", "https://private.example:8443",
		"https://private.example:8443/NPM",
		"https://private.example:8443/npm/../npm", "https://packages.example.com?x=y", "https://packages.example.com#x",
		"https:packages.example.com",
		"packages.example.com", "%", "https://www.example.com", "https://packages.example.com.", "\x00",
	} {
		b, err := c.Base(claimed)
		if err == nil {
			t.Errorf("Base(%q) = %s, want a refusal", claimed, b.URL())
		} else if !strings.Contains(err.Error(), ": use ") ||
			!strings.Contains(err.Error(), "https://private.example:8443/npm") {
			t.Errorf("Base(%q): %q does not name what is allowed", claimed, err)
		}
	}
	if b, err := c.Base("https://www.example.com/packages"); err != nil ||
		b.Credentials() != (Credentials{Token: "u"}) {
		t.Errorf("a configured default has no credentials: %v", err)
	}
	if b, err := c.Base(""); err != nil || !b.Credentials().Empty() {
		t.Errorf("the default has credentials: %v", err)
	}
}

func TestBaseWithoutDefaults(t *testing.T) {
	t.Parallel()
	c, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Base(""); err == nil || !strings.Contains(err.Error(), "configured no registry") {
		t.Errorf("Base = %v", err)
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	c, err := Open(Config{
		Environment: environment(
			`[{"baseUrl":"http://10.0.0.1/files","token":""},{"baseUrl":"https://f.example/a/index.json","token":"t"}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"https://downloads.example/x/y.mcpb": "https://downloads.example",
		"https://Downloads.example:443/x":    "https://downloads.example",
		"http://10.0.0.1/files/x.mcpb":       "http://10.0.0.1/files",
		"https://f.example/a/x":              "https://f.example/a/index.json",
		"https://f.example/b/x":              "https://f.example",
		"https://[2606:4700::1]/x":           "https://[2606:4700::1]",
	} {
		if b, err := c.At(address); err != nil || b.URL() != want {
			t.Errorf("At(%q) = %v, %v, want %q", address, b, err, want)
		}
	}
	for _, address := range []string{
		"", "x", "http://downloads.example/x", "http://10.0.0.1/filesystem", "http://10.0.0.1/files/../x",
		"https://a@downloads.example/x", "file:///x",
		"https:x", "%",
	} {
		if b, err := c.At(address); err == nil {
			t.Errorf("At(%q) = %s, want a refusal", address, b.URL())
		}
	}
}

// FuzzBase checks that an accepted base URL is in canonical form, and that paths below it cannot
// leave it.
func FuzzBase(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw string) {
		at, err := parseBaseURL(raw)
		if err != nil {
			return
		}
		again, err := parseBaseURL(at.String())
		if err != nil || again.String() != at.String() {
			t.Errorf("parseBase(%q) = %q, and that again %v, %v", raw, at, again, err)
		}
		b := &Base{registry: registry{url: at}}
		for suffix, want := range map[string]bool{"/x": true, "/../x": false, "/x/../../y": false, "/%2e%2e/x": false} {
			if strings.HasSuffix(at.Path, ".json") { // means its folder
				return
			}
			inside, err := url.Parse(at.String() + suffix)
			if err != nil || b.isBelow(inside) != want {
				t.Errorf("%q is below %q: %t, %v, want %t", inside, at, !want, err, want)
			}
		}
	})
}
