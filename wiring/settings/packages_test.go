package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func TestPackageRegistries(t *testing.T) {
	for name, content := range map[string]string{
		"yaml": "npm:\n  - baseUrl: https://npm.example.com\n    token: abc\noci:\n  - {baseUrl: 'https://oci.example.com', username: u, password: p}\n",
		"json": `{"npm": [{"baseUrl": "https://npm.example.com", "token": "abc"}], "oci": [{"baseUrl": "https://oci.example.com", "username": "u", "password": "p"}]}`,
	} {
		path := file(t, content)
		s, err := settings.Read([]string{"PACKAGE_REGISTRIES=" + path})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		npm := strings.Join(s.Plugins.Env["pkg-npm"], " ")
		if npm != `TOLLGATE_PACKAGE_REGISTRIES=[{"baseUrl":"https://npm.example.com","token":"abc"}]` {
			t.Errorf("%s: the npm plugin gets %s", name, npm)
		}
		if oci := strings.Join(s.Plugins.Env["pkg-oci"], " "); strings.Contains(oci, "abc") ||
			!strings.Contains(oci, "oci.example.com") {
			t.Errorf("%s: the oci plugin gets %s", name, oci)
		}
	}
}

// TestWrongPackageRegistries requires errors that name the variable and what is wrong, and contain
// no credentials.
func TestWrongPackageRegistries(t *testing.T) {
	for content, says := range map[string]string{
		"npm: [{baseUrl: 'ftp://x', token: topsecret}]":                        "npm[0]",
		"npm: [{baseUrl: 'https://u:topsecret@x'}]":                            "credentials",
		"npm: [{baseUrl: 'https://x', token: topsecret, password: topsecret}]": "token",
		"npm: [{baseUrl: 'https://x', tokn: topsecret}]":                       "baseUrl",
		"npm: [{baseUrl: 'https://x', password: topsecret}]":                   "both a username and a password",
		"npm: [{baseUrl: 'https://x', username: 'a:b', password: topsecret}]":  "colon",
		"npm: [{baseUrl: 'http://x', token: topsecret}]":                       "require an https base URL",
		"npm: [{baseUrl: 'https://x?token=topsecret'}]":                        "query",
		"npm: topsecret": "baseUrl",
		"npm: [{baseUrl: 'https://x', token: \"topsecret\\r\\nX-Header: more\"}]": "control characters",
	} {
		_, err := settings.Read([]string{"PACKAGE_REGISTRIES=" + file(t, content)})
		if err == nil {
			t.Errorf("%s is accepted", content)
			continue
		}
		if text := err.Error(); !strings.Contains(text, "PACKAGE_REGISTRIES") || !strings.Contains(text, says) ||
			strings.Contains(text, "topsecret") {
			t.Errorf("%s: %q", content, text)
		}
	}
	if _, err := settings.Read([]string{"PACKAGE_REGISTRIES=/none"}); err == nil ||
		!strings.Contains(err.Error(), "/none: cannot be read: no such file") {
		t.Errorf("a file that does not exist: %v", err)
	}
	if _, err := settings.Read([]string{"PACKAGE_CHECKS=maybe"}); err == nil ||
		!strings.Contains(err.Error(), "PACKAGE_CHECKS") {
		t.Errorf("PACKAGE_CHECKS=maybe: %v", err)
	}
}

// TestRegistriesOverHTTP requires that http is allowed without credentials, and with credentials
// for the machine itself.
func TestRegistriesOverHTTP(t *testing.T) {
	for _, content := range []string{
		"npm: [{baseUrl: 'http://npm.internal:4873'}]",
		"npm: [{baseUrl: 'http://127.0.0.1:4873', token: abc}]",
		"npm: [{baseUrl: 'http://localhost:4873', username: u, password: p}]",
		"npm: [{baseUrl: 'http://[::1]:4873', token: abc}]",
	} {
		if _, err := settings.Read([]string{"PACKAGE_REGISTRIES=" + file(t, content)}); err != nil {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// file writes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registries")
	must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
