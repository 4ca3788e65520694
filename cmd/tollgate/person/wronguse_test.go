package person_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/program"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestWrongUse checks that each error is one sentence that names the problem, and that the exit code
// distinguishes a missing sign-in from other failures.
func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"readable.json": 0o644, "server.json": 0o600} { // by other users
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte("{}"), mode))
	}
	const signIn, away = "tollgate login", "http://127.0.0.1:1"
	for _, c := range []struct {
		code        int
		line, names string
	}{
		{cli.ExitSignIn, "publish DIR/server.json", signIn},
		{cli.ExitFailed, "publish --url https://127.0.0.1:1 DIR/nothing.json", "nothing.json"},
		{cli.ExitAway, "publish --url " + away + " DIR/server.json", "127.0.0.1:1"},
		{cli.ExitFailed, "publish", "arg"},
		{cli.ExitFailed, "publish -o xml DIR/server.json", "--output"},
		{cli.ExitSignIn, "status", signIn},
		{cli.ExitFailed, "status --url http://example.com", "--insecure-http"},
		{cli.ExitFailed, "status --set deleted", "NAME"},
		{cli.ExitFailed, "status com.example/weather --set gone", `"gone" is not a status: use active`},
		{cli.ExitFailed, "status com.example/weather --message M", "--set"},
		{cli.ExitFailed, "status com.example/weather@", "NAME@VERSION"},
		{cli.ExitFailed, "status @1.0.0", "NAME@VERSION"},
		{cli.ExitSignIn, "whoami", signIn},
		{cli.ExitSignIn, "logout", signIn},
		{cli.ExitSignIn, "login --code 123456", signIn},
		{cli.ExitFailed, "login", "--url"},
		{cli.ExitFailed, "login --url ftp://example.com", `"ftp://example.com" does not begin with`},
		{cli.ExitAway, "login --url " + away, "127.0.0.1:1"},
		{cli.ExitAway, "status --url " + away, "127.0.0.1:1"},
		{cli.ExitFailed, "login --url " + away + " --email a@example.com", "--password-stdin"},
		{cli.ExitFailed, "login --url " + away + " --email nonsense --password-stdin", "email"},
		{cli.ExitFailed, "login --step-up pigeon", "--step-up"},
		{cli.ExitFailed, "login --step-up email --code 123456", "--code"},
		{cli.ExitFailed, "login --url http://example.com --email a@example.com --password-stdin", "--insecure-http"},
		{cli.ExitFailed, "tools record", "arg"},
		{cli.ExitFailed, "tools record --nonsense", "--nonsense"},
		{cli.ExitFailed, "tools record com.example/weather --package 0", "NAME@VERSION"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0", "--remote"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --remote https://example.com --package 0", "either"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --package 0 --header K", "--header needs --remote"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --remote https://example.com --env K", "--env needs --package"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --package 0 --diff --dry-run", "exclude each other"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --package 0 --diff --oidc", "--oidc is for"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --package 0 --env KEY=sesame", "--env takes a name only: its value"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --remote https://example.com --header X-Key:sesame", "--header takes a name"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --remote https://example.com --header X-Key", "in the variable X_KEY"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --package 0 --env TOLLGATE_TOKEN", "no server gets a variable of Tollgate"},
		{cli.ExitFailed, "tools record com.example/weather@1.0.0 --remote https://example.com --header Tollgate-Token", "no server gets"},
		{cli.ExitSignIn, "tools record com.example/weather@1.0.0 --package 0", signIn},
		{cli.ExitSignIn, "server deprecate com.example/weather", signIn},
		{cli.ExitFailed, "whoami", "DIR/readable.json"},
		{cli.ExitFailed, "login", "DIR/readable.json"},
	} {
		file, names := "DIR/missing.json", strings.ReplaceAll(c.names, "DIR", dir)
		if strings.HasSuffix(c.names, "readable.json") {
			file = c.names
		}
		var stdout, stderr strings.Builder
		code := program.Run(t.Context(), cli.Process{
			Args:    strings.Fields(strings.ReplaceAll(c.line, "DIR", dir)),
			Environ: []string{person.CredentialsVariable + "=" + strings.ReplaceAll(file, "DIR", dir)},
			Stdin:   strings.NewReader("password"), Stdout: &stdout, Stderr: &stderr,
		})
		text := stderr.String()
		if code != c.code || !strings.Contains(text, names) || strings.Count(text, "\n") != 1 || stdout.Len() > 0 || strings.Contains(text, "sesame") {
			t.Errorf("%s: code %d, %q, %s, want %d, a sentence with %q", c.line, code, text, &stdout, c.code, names)
		}
	}
}
