package publisher

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// expireAccessToken makes the stored access token look expired.
func expireAccessToken(t *testing.T, p *fixture.Publisher) {
	t.Helper()
	text, err := os.ReadFile(p.File)
	must.Succeed(t, err)
	var c map[string]any
	fixture.DecodeJSON(t, string(text), &c)
	c["signIn"].(map[string]any)["tokens"].(map[string]any)["expiresAt"] = "2020-01-01T00:00:00Z"
	changed, err := json.Marshal(c)
	must.Succeed(t, err)
	fixture.WriteFile(t, p.File, string(changed))
}

// documentFile writes a server document and returns its path.
func documentFile(t *testing.T, doc map[string]any) string {
	t.Helper()
	text, err := json.Marshal(doc)
	must.Succeed(t, err)
	path := filepath.Join(t.TempDir(), "server.json")
	fixture.WriteFile(t, path, string(text))
	return path
}

// TestPublisherPiped signs in, steps up, publishes and signs out without a terminal. What each command
// prints is tested in cmd/tollgate/person.
func TestPublisherPiped(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := fixture.NewPublisher(t, e.NewPerson(t, "ada@example.com", "publish com.example/*"))
		file := documentFile(t, fixture.NewServerDocument("com.example/weather", "1.0.0"))
		ada.Run(t, 1, "wrong", "login", "--url", s.API, "--email", ada.Email, "--password-stdin")
		ada.Run(t, 0, fixture.Password+"\n", "login", "--url", s.API, "--email", ada.Email, "--password-stdin")
		ada.Run(t, 3, "", "publish", file)
		ada.Run(t, 3, fixture.Password, "login", "--password-stdin", "--step-up", "email")
		ada.Run(t, 0, "", "login", "--code", e.LastCode(t, ada.Email), "--trust-device")
		ada.Run(t, 0, "", "publish", file)
		ada.Run(t, 0, "", "status", "com.example/weather", "--set", "deleted")
		checkRefreshes(t, ada)
		checkLogout(t, s, ada)
	})
}

// checkRefreshes checks that several commands with an expired token, run at once, renew it once and
// remain signed in.
func checkRefreshes(t *testing.T, ada *fixture.Publisher) {
	t.Helper()
	before := ada.Credentials(t)
	expireAccessToken(t, ada)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { ada.Run(t, 0, "", "whoami") })
	}
	all.Wait()
	after := ada.Credentials(t)
	if after.SignIn.Tokens.Refresh == before.SignIn.Tokens.Refresh ||
		after.SignIn.Tokens.Access == before.SignIn.Tokens.Access {
		t.Error("the tokens were not renewed")
	}
}

func checkLogout(t *testing.T, s *fixture.Service, ada *fixture.Publisher) {
	t.Helper()
	access := ada.Credentials(t).SignIn.Tokens.Access
	ada.Run(t, 0, "", "logout")
	if c := ada.Credentials(t); c.SignIn.Tokens != nil || len(c.DeviceTokens) != 1 {
		t.Errorf("after logout the file holds %+v", c)
	}
	apiclient.Call(t, "GET", s.API+"/auth/session", nil, "Authorization", "Bearer "+access).WantStatus(t, 401)
	out, _ := ada.Run(t, 0, fixture.Password, "login", "--password-stdin")
	// as fast as this test signs in
	if !strings.Contains(out, "FULL_TRUST") && !strings.Contains(out, "LIMITED_TRUST") {
		t.Errorf("login from a machine that is known: %s", out)
	}
}

// terminal is a command that runs at a terminal.
type terminal struct {
	t     *testing.T
	pty   *os.File
	cmd   *exec.Cmd
	lines chan string

	shown  strings.Builder
	looked int // the part of it that await has read
}

func openPublisherTerminal(t *testing.T, p *fixture.Publisher, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), args...)
	cmd.Env = p.Environ
	return openTerminal(t, cmd)
}

func openTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	return openTerminalOfSize(t, cmd, nil)
}

func openTerminalOfSize(t *testing.T, cmd *exec.Cmd, size *pty.Winsize) *terminal {
	t.Helper()
	f, err := pty.StartWithSize(cmd, size)
	must.Succeed(t, err)
	term := &terminal{t: t, pty: f, cmd: cmd, lines: make(chan string, 64)}
	go func() {
		defer close(term.lines)
		for {
			buffer := make([]byte, 4096)
			n, err := f.Read(buffer)
			if n > 0 {
				term.lines <- string(buffer[:n])
			}
			if err != nil {
				return // the command has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, or the test has failed
		f.Close()
	})
	return term
}

// TestTablesAtTheTerminal checks that no line is wider than the terminal, and that cells are not
// wrapped without a terminal.
func TestTablesAtTheTerminal(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	e.NewPerson(t, "ada@example.com", "publish com.example/a-rather-long-name-of-a-server-for-one-line-of-a-terminal")
	for _, args := range [][]string{{"settings"}, {"audit", "search"}, {"grant", "list"}} {
		cmd := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), args...)
		cmd.Env = e.Environ
		wrapped, whole := openTerminalOfSize(t, cmd, &pty.Winsize{Rows: 25, Cols: 72}).end(0),
			e.RunCommand(t, "", args...)
		for line := range strings.Lines(wrapped) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 72 {
				t.Errorf("%v: a line has %d columns: %s", args, n, line)
			}
		}
		// where wrapped cells are next to each other
		if removeSpaces(wrapped) != removeSpaces(whole) && args[0] != "settings" {
			t.Errorf("%v: the terminal shows\n%s\nand a file\n%s", args, wrapped, whole)
		}
	}
}

// removeSpaces removes all white space.
func removeSpaces(s string) string { return strings.Join(strings.Fields(s), "") }

// await waits until the terminal shows a text after the last awaited one.
func (c *terminal) await(text string) {
	c.t.Helper()
	for {
		if i := strings.Index(c.shown.String()[c.looked:], text); i >= 0 {
			c.looked += i + len(text)
			return
		}
		c.shown.WriteString(await.Receive(c.t, fmt.Sprintf("%q in the terminal:\n%s", text, c.shown.String()), c.lines))
	}
}

// answer waits for a prompt and types a line.
func (c *terminal) answer(prompt, line string) {
	c.t.Helper()
	c.await(prompt)
	if _, err := fmt.Fprintln(c.pty, line); err != nil {
		c.t.Fatal(err)
	}
}

// end waits for the end of the command and checks its exit code.
func (c *terminal) end(code int) string {
	c.t.Helper()
	for more := range c.lines {
		c.shown.WriteString(more)
	}
	_ = c.cmd.Wait() // the exit code shows it
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("exit code %d, want %d:\n%s", got, code, c.shown.String())
	}
	return c.shown.String()
}

// TestPublisherAtTheTerminal runs the commands of a publisher at a terminal, with a second factor.
func TestPublisherAtTheTerminal(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.Start(t, append(fixture.RegistrySettings(), fixture.RiskPolicy("one-failure"))...)
		ada := fixture.NewPublisher(t, e.NewPerson(t, "ada@example.com", "publish com.example/*"))
		file := documentFile(t, fixture.NewServerDocument("com.example/weather", "1.0.0"))

		c := openPublisherTerminal(t, ada, "login", "--email", ada.Email)
		c.answer("Address of the service: ", s.API)
		c.answer("Password: ", fixture.Password)
		c.await("Signed in at UNVERIFIED")
		c.answer("[email]: ", "none")
		ada.WantNoSecret(t, c.end(0))

		c = openPublisherTerminal(t, ada, "publish", file)
		c.answer("[email]: ", "")
		c.await("Code by email")
		wrong := "000000"
		if e.LastCode(t, ada.Email) == wrong {
			wrong = "111111"
		}
		_, _ = fmt.Fprintln(c.pty, wrong) // the next line fails if this one does
		first := e.LastCode(t, ada.Email)
		c.await("the code is wrong")
		c.answer("Code by email", "")
		c.await("Code by email")
		if e.LastCode(t, ada.Email) == first {
			t.Log("another code is the same as the first") // one in a million
		}
		_, _ = fmt.Fprintln(c.pty, e.LastCode(t, ada.Email)) // likewise
		c.await("com.example/weather")
		ada.WantNoSecret(t, c.end(0))

		app := e.EnrolAuthenticator(t, ada.Person)
		c = openPublisherTerminal(t, ada, "login", "--email", ada.Email, "--step-up", "none")
		c.answer("Password: ", fixture.Password)
		c.answer("authenticator: ", "nonsense")
		c.answer("authenticator: ", app.Code(t, 1))
		ada.WantNoSecret(t, c.end(0))
		_, stderr := ada.Run(t, 3, fixture.Password, "login", "--password-stdin")
		if !strings.Contains(stderr, "--mfa-code") {
			t.Errorf("login without the second factor: %s", stderr)
		}
		ada.Run(t, 0, fixture.Password, "login", "--password-stdin", "--mfa-code", app.Recovery[0])

		c = openPublisherTerminal(t, ada, "login", "--email", ada.Email)
		c.await("Password: ")
		must.Succeed(t, c.cmd.Process.Signal(os.Interrupt))
		c.await("interrupted")
		c.end(1)
		c = openPublisherTerminal(t, ada, "login", "--email", ada.Email)
		c.answer("Password: ", "abc\x03") // Ctrl-C
		c.await("interrupted")
		c.end(1)
	})
}

// TestPublishingGuide types every command of docs/publishing.md at a terminal, except that it
// replaces the service's address and reads codes from the courier's file.
func TestPublishingGuide(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../docs/publishing.md")
	must.Succeed(t, err)
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RiskPolicy("fast")) // this test signs in faster than people do
	ada := fixture.NewPublisher(t, e.NewPerson(t, "ada@example.com", "publish com.example/*"))
	withPerson, _, found := strings.Cut(string(content), "\n## Without a person\n")
	if !found {
		t.Fatal("docs/publishing.md has no section \"Without a person\"")
	}
	var script strings.Builder
	for _, block := range fixture.ShellBlock.FindAllStringSubmatch(withPerson, -1) {
		script.WriteString(block[1])
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c",
		strings.ReplaceAll(script.String(), "https://tollgate.example.com", s.API))
	cmd.Dir = t.TempDir()
	cmd.Env = append(ada.Environ, "PATH="+fixture.BinDir+":"+os.Getenv("PATH"))
	c := openTerminal(t, cmd)
	c.answer("Password: ", fixture.Password)
	c.answer("[email]: ", "")
	c.await("Code by email")
	c.answer(": ", e.LastCode(t, ada.Email))
	for _, shown := range []string{
		"FULL_TRUST  everything, including publishing", "FULL_TRUST", "database ok", "server.json  ok",
		"com.example/weather  1.0.0    yes     active", `"version": "1.1.0"`, "deprecated  no",
		"com.example/weather  1.1.0    active",
		"Signed out of", "is waiting for its code by email", "exit code 3",
	} {
		c.await(shown)
	}
	c.answer("Code: ", e.LastCode(t, ada.Email))
	for _, shown := range []string{
		"FULL_TRUST", "com.example/weather  1.2.0    yes", "Signed out of",
		"FULL_TRUST  everything, including publishing",
	} {
		c.await(shown)
	}
	c.end(0)
}

// TestOperatorAtTheTerminal checks that a password prompt does not show the password, and that
// prompts can be interrupted.
func TestOperatorAtTheTerminal(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	open := func(args ...string) *terminal {
		cmd := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), args...)
		cmd.Env = e.Environ
		return openTerminal(t, cmd)
	}
	add := []string{"user", "add", "--email", "ada@example.com", "--name", "Ada"}
	c := open(add...)
	c.answer("Password: ", fixture.Password)
	c.answer("Repeat the password: ", "another")
	c.await("the two passwords differ")
	c.end(1)
	c = open(add...)
	c.answer("Password: ", fixture.Password)
	c.answer("Repeat the password: ", fixture.Password)
	if shown := c.end(0); strings.Contains(shown, fixture.Password) || !strings.Contains(shown, "ada@example.com") {
		t.Errorf("user add shows %s", shown)
	}
	c = open("user", "enrol-mfa", "--email", "ada@example.com")
	c.await("█") // the QR code, which is not printed to a pipe
	c.await("otpauth://totp/")
	c.await("Code from the app: ")
	must.Succeed(t, c.cmd.Process.Signal(os.Interrupt))
	c.await("interrupted")
	c.end(1)
}
