package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublisherRefusals wants one sentence that names what is wrong, and the code that tells a sign-in is needed from
// what failed.
func TestPublisherRefusals(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open.json")
	if err := os.WriteFile(open, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(dir, "server.json")
	if err := os.WriteFile(document, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.json")
	for _, c := range []struct {
		credentials string
		args        []string
		code        int
		names       string
	}{
		{none, []string{"publish", document}, exitSignIn, "tollgate login"},
		{none, []string{"publish", "--url", "https://127.0.0.1:1", filepath.Join(dir, "nothing.json")}, exitFailed, "nothing.json"},
		{none, []string{"publish", "--url", "http://127.0.0.1:1", document}, exitFailed, "127.0.0.1:1"},
		{none, []string{"publish"}, exitFailed, "arg"},
		{none, []string{"publish", "-o", "xml", document}, exitFailed, "--output"},
		{none, []string{"status"}, exitSignIn, "tollgate login"},
		{none, []string{"status", "--url", "http://example.com"}, exitFailed, "--insecure-http"},
		{none, []string{"status", "--set", "deleted"}, exitFailed, "NAME"},
		{none, []string{"status", "com.example/weather", "--message", "M"}, exitFailed, "--set"},
		{none, []string{"status", "com.example/weather@"}, exitFailed, "NAME@VERSION"},
		{none, []string{"status", "@1.0.0"}, exitFailed, "NAME@VERSION"},
		{none, []string{"whoami"}, exitSignIn, "tollgate login"},
		{none, []string{"logout"}, exitSignIn, "tollgate login"},
		{none, []string{"login", "--code", "123456"}, exitSignIn, "tollgate login"},
		{none, []string{"login"}, exitFailed, "--url"},
		{none, []string{"login", "--url", "http://127.0.0.1:1"}, exitFailed, "--email"},
		{none, []string{"login", "--url", "http://127.0.0.1:1", "--email", "a@example.com"}, exitFailed, "--password-stdin"},
		{none, []string{"login", "--url", "http://127.0.0.1:1", "--email", "nonsense", "--password-stdin"}, exitFailed, "email"},
		{none, []string{"login", "--step-up", "pigeon"}, exitFailed, "--step-up"},
		{none, []string{"login", "--step-up", "email", "--code", "123456"}, exitFailed, "--code"},
		{none, []string{"login", "--url", "http://example.com", "--email", "a@example.com", "--password-stdin"}, exitFailed, "--insecure-http"},
		{open, []string{"whoami"}, exitFailed, open},
		{open, []string{"login"}, exitFailed, open},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), process{
			args: c.args, environ: []string{credentialsVariable + "=" + c.credentials},
			stdin: strings.NewReader("password"), stdout: &stdout, stderr: &stderr,
		})
		if code != c.code || !strings.Contains(stderr.String(), c.names) || strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%v: code %d, %q, %q, want %d and one sentence with %q", c.args, code, stderr.String(), stdout.String(), c.code, c.names)
		}
	}
}
