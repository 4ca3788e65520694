package publisher

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// longDomain returns a domain of the given length, from labels of at most 49 characters.
func longDomain(length int) string {
	labels := strings.Repeat(strings.Repeat("a", 49)+".", length/50+1)
	return labels[:length-1] + "b"
}

func TestParseDomainReturnsLowerCase(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"example.com":                  "example.com",
		"EXAMPLE.Com":                  "example.com",
		"a.b":                          "a.b",
		"1.example":                    "1.example",
		"1.2.3.4.example":              "1.2.3.4.example",
		"a--b.example":                 "a--b.example",
		"xn--bcher-kva.example":        "xn--bcher-kva.example",
		"0x7f.example":                 "0x7f.example",
		"example.0xg":                  "example.0xg",
		"example.7f":                   "example.7f",
		"github.io.example":            "github.io.example",
		"notgithub.io":                 "notgithub.io",
		"github.com":                   "github.com",
		strings.Repeat("a", 63) + ".b": strings.Repeat("a", 63) + ".b",
		longDomain(253):                longDomain(253),
	} {
		if d, err := ParseDomain(s); err != nil || d.String() != want {
			t.Errorf("ParseDomain(%q) = %q, %v, want %q", s, d, err, want)
		}
	}
}

func TestParseDomainRefuses(t *testing.T) {
	t.Parallel()
	for defect, test := range map[string]struct{ domain, message string }{
		"empty":                    {"", "must not be empty"},
		"one label":                {"localhost", "must have a dot"},
		"too long":                 {longDomain(254), "at most 253 characters, and has 254"},
		"a long label":             {strings.Repeat("a", 64) + ".example", "labels"},
		"a trailing dot":           {"example.com.", "labels"},
		"a leading dot":            {".example.com", "labels"},
		"two dots":                 {"example..com", "labels"},
		"only dots":                {"..", "labels"},
		"an underscore":            {"_mcp.example.com", "labels"},
		"a hyphen before":          {"-a.example", "labels"},
		"a hyphen behind":          {"a-.example", "labels"},
		"a hyphen at the end":      {"example.com-", "labels"},
		"a space":                  {"exa mple.com", "labels"},
		"a line end":               {"example.com\n", "labels"},
		"a NUL":                    {"example\x00.com", "labels"},
		"a port":                   {"example.com:443", "labels"},
		"a path":                   {"example.com/a", "labels"},
		"a user":                   {"a@example.com", "labels"},
		"a wildcard":               {"*.example.com", "labels"},
		"umlaut":                   {"bücher.example", "labels"},
		"not UTF-8":                {"b\xffcher.example", "labels"},
		"a full-width dot":         {"example\uff0ecom", "must have a dot"},
		"a Kelvin sign":            {"\u212aey.example", "labels"}, // ToLower makes k of it
		"a capital I with a dot":   {"\u0130o.example", "labels"},  // ToLower makes i of it
		"an IPv4 address":          {"1.2.3.4", "IP address"},
		"two numbers":              {"127.1", "IP address"},
		"three numbers":            {"1.2.3", "IP address"},
		"a number out of range":    {"1.2.3.400", "IP address"},
		"a hexadecimal first part": {"0x7f.1", "IP address"},
		"a hexadecimal last part":  {"127.0x1", "IP address"},
		"upper case hexadecimal":   {"127.0X1F", "IP address"},
		"an empty hexadecimal":     {"127.0x", "IP address"},
		"an octal number":          {"0177.01", "IP address"},
		"a number at the end":      {"example.123", "IP address"},
		"an IPv6 address":          {"2001:db8::1", "must have a dot"},
		"IPv6 in brackets":         {"[2001:db8::1]", "must have a dot"},
		"IPv4 in IPv6":             {"::ffff:1.2.3.4", "labels"},
		"github.io":                {"github.io", "github-oidc"},
		"below github.io":          {"acme.github.io", "github-oidc"},
		"far below github.io":      {"a.b.GitHub.IO", "github-oidc"},
	} {
		d, err := ParseDomain(test.domain)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "domain must ") ||
			!strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: ParseDomain(%q) = %q, %v, want a fault with %q", defect, test.domain, d, err, test.message)
		}
	}
}

func TestDomainPatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		domain, namespace string
		dns, http         []string
	}{
		{"example.com", "com.example", []string{"com.example/*", "com.example.*"}, []string{"com.example/*"}},
		{"A.B.Example", "example.b.a", []string{"example.b.a/*", "example.b.a.*"}, []string{"example.b.a/*"}},
	} {
		d := parse(t, ParseDomain, test.domain)
		wantEqual(t, d.Namespace(), test.namespace, "namespace of %s", d)
		for m, want := range map[Method][]string{DNS: test.dns, HTTP: test.http} {
			wantEqual(t, patternTexts(d.Patterns(m)), want, "patterns of %s by %s", d, m)
		}
	}
}

func TestLongNamespaceHasNoPatterns(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]int{198: 1, 199: 0, 253: 0} {
		if got := parse(t, ParseDomain, longDomain(length)).Patterns(HTTP); len(got) != want {
			t.Errorf("a domain of %d characters has patterns %q, want %d", length, got, want)
		}
	}
}

func patternTexts(list []registry.Pattern) []string {
	var texts []string
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return texts
}
