package program

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// result is the outcome of one run of the program.
type result struct {
	code           int
	stdout, stderr string
}

// runCommand runs the program with its database in dir.
func runCommand(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), cli.Process{
		Args: args, Environ: []string{"DATA_DIR=" + dir}, Stdin: strings.NewReader(stdin), Stdout: &stdout,
		Stderr: &stderr,
	})
	return result{code, stdout.String(), stderr.String()}
}

// newDatabase returns a folder with a new database.
func newDatabase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if r := runCommand(t, dir, "", "migrate"); r.code != cli.ExitOK {
		t.Fatalf("migrate: %+v", r)
	}
	return dir
}

const password = "Correct-Horse-7-Battery"

func TestUsersAndGrants(t *testing.T) {
	dir := t.TempDir()
	add := []string{
		"user", "add", "--email", " Ada@Example.com ", "--name", "Ada", "--password-stdin", "--output", "json",
	}
	r := runCommand(t, dir, password, add...)
	var user struct{ ID, Email, Name string }
	if err := json.Unmarshal([]byte(r.stdout), &user); err != nil || r.code != cli.ExitOK ||
		user.Email != "ada@example.com" {
		t.Fatalf("user add: %+v, %v", r, err)
	}
	if r := runCommand(t, dir, password, add...); r.code != cli.ExitFailed || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("adding the same address again: %+v", r)
	}
	grant := []string{"--email", "ada@example.com", "--action", "publish", "--resource", "com.example/*"}
	if r := runCommand(t, dir, "", append([]string{"grant", "add"}, grant...)...); r.code != cli.ExitOK {
		t.Errorf("grant add: %+v", r)
	}
	r = runCommand(t, dir, "", "grant", "list", "-o", "json")
	var grants []struct{ Email, Action, Resource, Origin string }
	if err := json.Unmarshal([]byte(r.stdout), &grants); err != nil || len(grants) != 1 ||
		grants[0].Resource != "com.example/*" || grants[0].Origin != "hand" {
		t.Errorf("grant list: %+v, %v", r, err)
	}
	checkGrantsOfOne(t, dir)
	if r := runCommand(t, dir, "", append([]string{"grant", "remove"}, grant...)...); r.code != cli.ExitOK {
		t.Errorf("grant remove: %+v", r)
	}
	if r := runCommand(t, dir, "", append([]string{"grant", "remove"}, grant...)...); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "does not have this grant") {
		t.Errorf("grant remove again: %+v", r)
	}
	if r := runCommand(t, dir, "", "grant", "list", "-o", "json"); strings.TrimSpace(r.stdout) != "[]" {
		t.Errorf("without grants the list is %q, want []", r.stdout)
	}
}

// checkGrantsOfOne checks that grant list --email shows only the grants of that person. The caller
// has given Ada one grant.
func checkGrantsOfOne(t *testing.T, dir string) {
	t.Helper()
	if r := runCommand(t, dir, password, "user", "add", "--email", "bob@example.com", "--name", "Bob",
		"--password-stdin"); r.code != cli.ExitOK {
		t.Fatalf("user add: %+v", r)
	}
	if r := runCommand(t, dir, "", "grant", "add", "--email", "bob@example.com", "--action", "edit", "--resource",
		"*"); r.code != cli.ExitOK {
		t.Fatalf("grant add: %+v", r)
	}
	r := runCommand(t, dir, "", "grant", "list", "--email", "BOB@example.com", "-o", "json")
	var grants []struct{ Email, Action, Resource string }
	if err := json.Unmarshal([]byte(r.stdout),
		&grants); err != nil || len(grants) != 1 || grants[0].Email != "bob@example.com" || grants[0].Resource != "*" {
		t.Errorf("grant list --email: %+v, %v", r, err)
	}
	if r := runCommand(t, dir, "", "grant", "list", "--email", "none@example.com"); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "none@example.com") {
		t.Errorf("grant list of an unknown person: %+v", r)
	}
	for _, email := range []string{"", "no address"} {
		if r := runCommand(t, dir, "", "grant", "list", "--email", email); r.code == cli.ExitOK {
			t.Errorf("grant list --email %q: %+v", email, r)
		}
	}
	if r := runCommand(t, dir, "", "grant", "remove", "--email", "bob@example.com", "--action", "edit", "--resource",
		"*"); r.code != cli.ExitOK {
		t.Errorf("grant remove: %+v", r)
	}
}

func TestUserChanges(t *testing.T) {
	dir := t.TempDir()
	email := []string{"--email", "ada@example.com", "-o", "json"}
	if r := runCommand(t, dir, password,
		append([]string{"user", "add", "--name", "Ada", "--password-stdin"}, email...)...); r.code != cli.ExitOK {
		t.Fatalf("user add: %+v", r)
	}
	for _, c := range []struct {
		stdin string
		args  []string
		shows string
	}{
		{"", []string{"lock"}, `"state": "locked"`},
		{"", []string{"unlock"}, `"state": "active"`},
		{"", []string{"disable"}, `"state": "disabled"`},
		{"", []string{"enable"}, `"state": "active"`},
		{"", []string{"set-phone", "--phone", "+441632960961"}, `"phone": "+441632960961"`},
		{"Another-Horse-8-Battery", []string{"set-password", "--password-stdin"}, `"email": "ada@example.com"`},
	} {
		args := append(append([]string{"user"}, c.args...), email...)
		if r := runCommand(t, dir, c.stdin, args...); r.code != cli.ExitOK || !strings.Contains(r.stdout, c.shows) {
			t.Errorf("%v: %+v", args, r)
		}
		args = append(append([]string{"user"}, c.args...), "--email", "none@example.com")
		if r := runCommand(t, dir, c.stdin, args...); r.code != cli.ExitFailed ||
			!strings.Contains(r.stderr, "none@example.com") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := runCommand(t, dir, "", "user", "list"); !strings.Contains(r.stdout,
		"ada@example.com  Ada   active  +441632960961") {
		t.Errorf("user list: %+v", r)
	}
}

func TestUserMFA(t *testing.T) {
	dir := t.TempDir()
	if r := runCommand(t, dir, password, "user", "add", "--email", "ada@example.com", "--name", "Ada",
		"--password-stdin"); r.code != cli.ExitOK {
		t.Fatalf("user add: %+v", r)
	}
	mfa := func(args ...string) result {
		return runCommand(t, dir, "", append([]string{"user"}, append(args, "--email", "ada@example.com")...)...)
	}
	listed := func(state string) {
		t.Helper()
		if r := runCommand(t, dir, "", "user", "list", "-o", "json"); !strings.Contains(r.stdout,
			`"mfa": "`+state+`"`) {
			t.Errorf("user list: %+v, want %s", r, state)
		}
	}
	refused := func(names string, args ...string) {
		t.Helper()
		if r := mfa(args...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, names) ||
			strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%v: %+v, want one sentence that contains %q", args, r, names)
		}
	}
	listed("none")
	refused("no authenticator", "disable-mfa")
	refused("enrol one first", "enrol-mfa", "--activate", "123456")
	refused("--output", "enrol-mfa", "-o", "xml")
	r := mfa("enrol-mfa")
	if !strings.Contains(r.stdout, "otpauth://totp/Tollgate:ada%40example.com?secret=") ||
		strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stderr, "--activate") {
		t.Errorf("enrol-mfa: %+v", r)
	}
	listed("pending")
	refused("the code is wrong", "enrol-mfa", "--activate", "nonsense")
	var enrolled struct{ OTPAuthURI string }
	r = mfa("enrol-mfa", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &enrolled); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	code := authenticatorCode(t, enrolled.OTPAuthURI)
	if r := mfa("enrol-mfa", "--activate", code); r.code != cli.ExitOK || strings.Count(r.stdout, "\n") != 11 ||
		!strings.HasPrefix(r.stdout, "RECOVERY CODES\n") {
		t.Errorf("activate: %+v", r)
	}
	listed("active")
	refused("disable it first", "enrol-mfa")
	if r := mfa("disable-mfa"); r.code != cli.ExitOK {
		t.Errorf("disable-mfa: %+v", r)
	}
	listed("none")
	if r := runCommand(t, dir, "", "user", "enrol-mfa", "--email", "none@example.com"); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "none@example.com") {
		t.Errorf("enrolling an unknown person: %+v", r)
	}
}

const noID = "00000000-0000-4000-8000-000000000000"

// TestWrongUse checks that wrong use prints one sentence that names the error.
func TestWrongUse(t *testing.T) {
	dir := newDatabase(t)
	for _, c := range []struct {
		stdin string
		args  []string
		names string
	}{
		{"", []string{"nonsense"}, "nonsense"},
		{"", []string{"registry", "exprot"}, "exprot"},
		{"", []string{"usr"}, `, did you mean user`},
		{"", []string{"help", "nonsense"}, "nonsense"},
		{"", []string{"login", "--url", "ftp://example.com"}, `"ftp://example.com" does not begin with`},
		{"", []string{"help", "user", "nonsense"}, "nonsense"},
		{"", []string{"status", "com.example/weather", "--set", "gone"}, `"gone" is not a status: use active`},
		{"", []string{"backup", ""}, "is empty"},
		{"", []string{"backup"}, "use 'tollgate backup FILE [flags]'"},
		{"", []string{"user", "list", "more"}, "use 'tollgate user list [flags]'"},
		{"", []string{"completion", "bash", "more"}, "use 'tollgate completion bash'"},
		{"", []string{"audit", "search", "--limit", "many"}, `--limit: "many" is not a whole number`},
		{"", []string{"user", "nonsense"}, "nonsense"},
		{"", []string{"grant", "nonsense"}, "nonsense"},
		{
			"", []string{"user", "add", "--name", "N"},
			"--email is missing: use 'tollgate user add --email E --name N [flags]'",
		},
		{"", []string{"user", "add", "more"}, "--email and --name are missing: use '"},
		{"", []string{"grant", "add"}, "--action is missing: use '"},
		{"", []string{"grant", "add", "--action", "edit", "--resource", "*"}, "--email or --service is required"},
		{"", []string{"grant", "add", "--service", "none", "--action", "edit", "--resource", "*"}, "no service account none"},
		{"short", []string{"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin"}, "password"},
		{
			"Password123!", []string{
				"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin",
			}, "password",
		},
		{password, []string{"user", "add", "--email", "nonsense", "--name", "N", "--password-stdin"}, "email"},
		{
			password, []string{
				"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin", "--phone", "12",
			}, "phone",
		},
		{
			strings.Repeat("x", 2000), []string{
				"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin",
			}, "too long",
		},
		{"", []string{"user", "add", "--email", "a@example.com", "--name", "N"}, "--password-stdin"},
		{
			"", []string{"grant", "add", "--email", "none@example.com", "--action", "publish", "--resource", "*"},
			"none@example.com",
		},
		{"", []string{"grant", "add", "--email", "a@example.com", "--action", "own", "--resource", "*"}, "action"},
		{"", []string{"grant", "add", "--email", "a@example.com", "--action", "edit", "--resource", "com.*/x"}, "*"},
		{"", []string{"grant", "list", "--output", "xml"}, "--output"},
		{
			password, []string{
				"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin", "--output", "xml",
			}, "--output",
		},
		// the command before added no account
		{"", []string{"user", "show", "--email", "a@example.com"}, "a@example.com"},
		{"", []string{"user", "show", "--email", "none@example.com"}, "none@example.com"},
		{"", []string{"device", "list"}, "email"},
		{"", []string{"device", "list", "--email", "none@example.com"}, "none@example.com"},
		{"", []string{"device", "revoke", "--email", "none@example.com", "seven"}, "ID must be a UUID"},
		{"", []string{"session", "list", "--email", "none@example.com"}, "none@example.com"},
		{"", []string{"session", "end", "--email", "none@example.com"}, "--all"},
		{"", []string{"session", "end", "--email", "none@example.com", "--all", noID}, "--all"},
		{"", []string{"session", "end", "--email", "none@example.com", noID}, "none@example.com"},
		{"", []string{"audit", "search", "--email", "none@example.com"}, "none@example.com"},
		{"", []string{"audit", "search", "--email", "a@example.com", "--user", noID}, "not both"},
		{"", []string{"audit", "search", "--user", "seven"}, "--user must be a UUID"},
		{"", []string{"audit", "search", "--type", "LOGIN"}, "LOGIN_ATTEMPT"},
		{"", []string{"audit", "search", "--since", "yesterday"}, "--since"},
		{"", []string{"audit", "search", "--until", "-5m"}, "--until"},
		{"", []string{"audit", "search", "--limit", "-1"}, "--limit"},
		{"", []string{"audit", "search", "--since", "1h", "--until", "2h"}, "--since 1h is not before --until 2h"},
		{"", []string{"audit", "search", "--since", "2026-01-01", "--until", "2026-01-01"}, "is not before --until"},
		{"", []string{"audit", "search", "-o", "xml"}, "jsonl"},
		{"", []string{"migrate", "nonsense"}, "nonsense"},
		{"", []string{"backup", dir + "/none/file"}, "none/file"},
		{"", []string{"serve", "--only", "nonsense"}, "nonsense"},
		{"", []string{"ratelimit", "check", dir + "/none"}, dir + "/none"},
	} {
		r := runCommand(t, dir, c.stdin, c.args...)
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, c.names) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: %+v, want one sentence that contains %q", c.args, r, c.names)
		}
		if r.stdout != "" {
			t.Errorf("%v printed %q", c.args, r.stdout)
		}
	}
}

// TestInterrupted checks that a signal ends a command that waits for standard input.
func TestInterrupted(t *testing.T) {
	for _, args := range [][]string{
		{"registry", "validate", "-"},
		{"registry", "import", "-"},
		{"methods", "import", "-"},
		{"risk", "replay", "-"},
		{"publish", "-", "--url", "http://localhost:1"},
		{"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			reading, writing := io.Pipe()
			defer writing.Close()
			waits := readerFunc(func(b []byte) (int, error) {
				interrupt()
				return reading.Read(b)
			})
			var stderr bytes.Buffer
			code := Run(ctx, cli.Process{
				Args: args, Environ: []string{
					"DATA_DIR=" + newDatabase(t),
					"TOLLGATE_CREDENTIALS=" + filepath.Join(t.TempDir(), "credentials.json"),
				},
				Stdin: waits, Stdout: io.Discard, Stderr: &stderr,
			})
			if text := stderr.String(); code != cli.ExitFailed || !strings.Contains(text, "tollgate: interrupted") ||
				strings.Count(text, "\n") != 1 {
				t.Errorf("exit code %d, %q", code, text)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestFullDisk checks that a failed write of the output is reported once.
func TestFullDisk(t *testing.T) {
	for _, args := range [][]string{{"audit", "search"}, {"user", "list"}, {"settings"}} {
		var stderr bytes.Buffer
		code := Run(t.Context(), cli.Process{
			Args: args, Environ: []string{"DATA_DIR=" + newDatabase(t)}, Stdin: strings.NewReader(""),
			Stdout: fullDisk{}, Stderr: &stderr,
		})
		if text := stderr.String(); code != cli.ExitFailed || strings.Count(text, syscall.ENOSPC.Error()) != 1 {
			t.Errorf("%v: exit code %d, %q", args, code, text)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestMigrateAndSettings(t *testing.T) {
	dir := t.TempDir()
	first := runCommand(t, dir, "", "migrate")
	if first.code != cli.ExitOK || !strings.Contains(first.stdout, "0001_registry") {
		t.Errorf("migrate: %+v", first)
	}
	if again := runCommand(t, dir, "", "migrate", "-o", "json"); strings.TrimSpace(again.stdout) != "[]" {
		t.Errorf("migrate again: %+v", again)
	}
	var steps []struct{ Name, State, AppliedAt string }
	r := runCommand(t, dir, "", "migrate", "status", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &steps); err != nil || len(steps) < 7 || steps[0].State != "applied" ||
		steps[0].AppliedAt == "" {
		t.Errorf("migrate status: %+v, %v", r, err)
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "tollgate.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runCommand(t, empty, "", "migrate", "status"); r.code != cli.ExitOK ||
		strings.Count(r.stdout, "pending") != len(steps) {
		t.Errorf("migrate status of an empty database: %+v", r)
	}
	if r := runCommand(t, dir, "", "settings"); !strings.Contains(r.stdout, dir) {
		t.Errorf("settings do not show DATA_DIR: %+v", r)
	}
}

// TestEveryCommandHasAnExample checks that each command has an example that calls it.
func TestEveryCommandHasAnExample(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.HasParent() && !strings.Contains(c.Example, "tollgate "+strings.TrimPrefix(c.CommandPath(), "tollgate ")) {
			t.Errorf("%s has the example %q", c.CommandPath(), c.Example)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot(cli.Process{}))
}

// TestTakenPort checks that a service that cannot listen exits with one sentence that contains the
// port.
func TestTakenPort(t *testing.T) {
	var listen net.ListenConfig
	taken, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"PORT", "RATELIMIT_HTTP_PORT", "GRPC_PORT", "DEBUG_PORT"} {
		environ := []string{"DATA_DIR=" + t.TempDir()}
		for _, other := range []string{"HOST", "RATELIMIT_HTTP_HOST", "GRPC_HOST", "DEBUG_HOST"} {
			environ = append(environ, other+"=127.0.0.1", strings.Replace(other, "HOST", "PORT", 1)+"=0")
		}
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), cli.Process{
			Args: []string{"serve"}, Environ: append(environ, name+"="+port, "LOG_LEVEL=error"), Stdout: &stdout,
			Stderr: &stderr,
		})
		if code != cli.ExitFailed || !strings.Contains(stderr.String(), port) ||
			strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s taken: code %d, %q", name, code, stderr.String())
		}
	}
}

// TestUnwritableFolder checks that the error contains the path.
func TestUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := runCommand(t, filepath.Join(file, "data"), "", "grant", "list")
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, file) || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("a folder below a file: %+v", r)
	}
}

// authenticatorCode returns the code that an authenticator with the URI shows now.
func authenticatorCode(t *testing.T, uri string) string {
	t.Helper()
	address, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	var secret auth.TOTPSecret
	if n, err := base32.StdEncoding.Decode(secret[:], []byte(address.Query().Get("secret"))); err != nil ||
		n != len(secret) {
		t.Fatalf("%s has a secret of %d bytes: %v", uri, n, err)
	}
	return string(secret.Code(auth.TOTPStep(time.Now())))
}
