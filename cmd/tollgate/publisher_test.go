package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublisherErrors checks that each error is one sentence that names the problem, and that the
// exit code distinguishes a missing sign-in from other failures.
func TestPublisherErrors(t *testing.T) {
	dir := t.TempDir()
	readable := filepath.Join(dir, "readable.json") // by other users
	if err := os.WriteFile(readable, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(dir, "server.json")
	if err := os.WriteFile(document, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.json")
	for _, c := range []struct {
		credentials string
		args        []string
		code        int
		names       string
	}{
		{missing, []string{"publish", document}, exitSignIn, "tollgate login"},
		{missing, []string{"publish", "--url", "https://127.0.0.1:1", filepath.Join(dir, "nothing.json")}, exitFailed, "nothing.json"},
		{missing, []string{"publish", "--url", "http://127.0.0.1:1", document}, exitFailed, "127.0.0.1:1"},
		{missing, []string{"publish"}, exitFailed, "arg"},
		{missing, []string{"publish", "-o", "xml", document}, exitFailed, "--output"},
		{missing, []string{"status"}, exitSignIn, "tollgate login"},
		{missing, []string{"status", "--url", "http://example.com"}, exitFailed, "--insecure-http"},
		{missing, []string{"status", "--set", "deleted"}, exitFailed, "NAME"},
		{missing, []string{"status", "com.example/weather", "--message", "M"}, exitFailed, "--set"},
		{missing, []string{"status", "com.example/weather@"}, exitFailed, "NAME@VERSION"},
		{missing, []string{"status", "@1.0.0"}, exitFailed, "NAME@VERSION"},
		{missing, []string{"whoami"}, exitSignIn, "tollgate login"},
		{missing, []string{"logout"}, exitSignIn, "tollgate login"},
		{missing, []string{"login", "--code", "123456"}, exitSignIn, "tollgate login"},
		{missing, []string{"login"}, exitFailed, "--url"},
		{missing, []string{"login", "--url", "http://127.0.0.1:1"}, exitFailed, "--email"},
		{missing, []string{"login", "--url", "http://127.0.0.1:1", "--email", "a@example.com"}, exitFailed, "--password-stdin"},
		{missing, []string{"login", "--url", "http://127.0.0.1:1", "--email", "nonsense", "--password-stdin"}, exitFailed, "email"},
		{missing, []string{"login", "--step-up", "pigeon"}, exitFailed, "--step-up"},
		{missing, []string{"login", "--step-up", "email", "--code", "123456"}, exitFailed, "--code"},
		{missing, []string{"login", "--url", "http://example.com", "--email", "a@example.com", "--password-stdin"}, exitFailed, "--insecure-http"},
		{readable, []string{"whoami"}, exitFailed, readable},
		{readable, []string{"login"}, exitFailed, readable},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), process{
			args: c.args, environ: []string{credentialsVariable + "=" + c.credentials},
			stdin: strings.NewReader("password"), stdout: &stdout, stderr: &stderr,
		})
		if code != c.code || !strings.Contains(stderr.String(), c.names) || strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%v: code %d, %q, %q, want %d and one sentence that contains %q", c.args, code, stderr.String(), stdout.String(), c.code, c.names)
		}
	}
}
