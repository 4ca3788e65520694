package program

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
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
		{missing, []string{"publish", document}, cli.ExitSignIn, "tollgate login"},
		{
			missing, []string{"publish", "--url", "https://127.0.0.1:1", filepath.Join(dir, "nothing.json")},
			cli.ExitFailed, "nothing.json",
		},
		{missing, []string{"publish", "--url", "http://127.0.0.1:1", document}, cli.ExitFailed, "127.0.0.1:1"},
		{missing, []string{"publish"}, cli.ExitFailed, "arg"},
		{missing, []string{"publish", "-o", "xml", document}, cli.ExitFailed, "--output"},
		{missing, []string{"status"}, cli.ExitSignIn, "tollgate login"},
		{missing, []string{"status", "--url", "http://example.com"}, cli.ExitFailed, "--insecure-http"},
		{missing, []string{"status", "--set", "deleted"}, cli.ExitFailed, "NAME"},
		{missing, []string{"status", "com.example/weather", "--message", "M"}, cli.ExitFailed, "--set"},
		{missing, []string{"status", "com.example/weather@"}, cli.ExitFailed, "NAME@VERSION"},
		{missing, []string{"status", "@1.0.0"}, cli.ExitFailed, "NAME@VERSION"},
		{missing, []string{"whoami"}, cli.ExitSignIn, "tollgate login"},
		{missing, []string{"logout"}, cli.ExitSignIn, "tollgate login"},
		{missing, []string{"login", "--code", "123456"}, cli.ExitSignIn, "tollgate login"},
		{missing, []string{"login"}, cli.ExitFailed, "--url"},
		{missing, []string{"login", "--url", "http://127.0.0.1:1"}, cli.ExitFailed, "--email"},
		{
			missing, []string{"login", "--url", "http://127.0.0.1:1", "--email", "a@example.com"}, cli.ExitFailed,
			"--password-stdin",
		},
		{
			missing, []string{"login", "--url", "http://127.0.0.1:1", "--email", "nonsense", "--password-stdin"},
			cli.ExitFailed, "email",
		},
		{missing, []string{"login", "--step-up", "pigeon"}, cli.ExitFailed, "--step-up"},
		{missing, []string{"login", "--step-up", "email", "--code", "123456"}, cli.ExitFailed, "--code"},
		{
			missing, []string{"login", "--url", "http://example.com", "--email", "a@example.com", "--password-stdin"},
			cli.ExitFailed, "--insecure-http",
		},
		{readable, []string{"whoami"}, cli.ExitFailed, readable},
		{readable, []string{"login"}, cli.ExitFailed, readable},
	} {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), cli.Process{
			Args: c.args, Environ: []string{person.CredentialsVariable + "=" + c.credentials},
			Stdin: strings.NewReader("password"), Stdout: &stdout, Stderr: &stderr,
		})
		if code != c.code || !strings.Contains(stderr.String(), c.names) || strings.Count(stderr.String(), "\n") != 1 ||
			stdout.Len() > 0 {
			t.Errorf("%v: code %d, %q, %q, want %d and one sentence that contains %q", c.args, code, stderr.String(),
				stdout.String(), c.code, c.names)
		}
	}
}
