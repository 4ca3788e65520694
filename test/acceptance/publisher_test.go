package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
)

// publisher is a person at a machine of their own, with the service's address and nothing else.
type publisher struct {
	environ []string
	file    string // where the commands keep them signed in
	*person
}

func newPublisher(t *testing.T, p *person) *publisher {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings", "credentials.json")
	return &publisher{[]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TOLLGATE_CREDENTIALS=" + file}, file, p}
}

// run runs a command where nobody can be asked, and wants its exit code. It returns standard output and error.
func (p *publisher) run(t *testing.T, code int, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(built, "tollgate"), args...)
	cmd.Env = p.environ
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("tollgate %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &errs)
	}
	p.wantNoSecret(t, out.String()+errs.String())
	return out.String(), errs.String()
}

// wantNoSecret wants nothing of what the file keeps in what a command printed.
func (p *publisher) wantNoSecret(t *testing.T, printed string) {
	t.Helper()
	for _, secret := range append(p.secrets(t), password) {
		if secret != "" && strings.Contains(printed, secret) {
			t.Errorf("a secret was printed: %s", printed)
		}
	}
}

type keptCredentials struct {
	SignIn struct {
		Tokens *struct {
			Access, Refresh string
			ExpiresAt       time.Time
		}
	}
	DeviceTokens []struct{ Token string }
}

func (p *publisher) credentials(t *testing.T) (c keptCredentials) {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return c
	}
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(text), &c)
	return c
}

func (p *publisher) secrets(t *testing.T) []string {
	c := p.credentials(t)
	var secrets []string
	if c.SignIn.Tokens != nil {
		secrets = append(secrets, c.SignIn.Tokens.Access, c.SignIn.Tokens.Refresh)
	}
	for _, d := range c.DeviceTokens {
		secrets = append(secrets, d.Token)
	}
	return secrets
}

// outlive makes the access token look as if its time were over.
func (p *publisher) outlive(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	decode(t, string(text), &c)
	c["signIn"].(map[string]any)["tokens"].(map[string]any)["expiresAt"] = "2020-01-01T00:00:00Z"
	changed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.file, string(changed))
}

// documentFile writes a server document and returns its path.
func documentFile(t *testing.T, doc map[string]any) string {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server.json")
	write(t, path, string(text))
	return path
}

// TestPublisherPiped is a publisher's day in a pipeline, where nobody can be asked.
func TestPublisherPiped(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, registryEnviron()...)
		ada := newPublisher(t, e.newPerson(t, "ada@example.com", "publish com.example/*"))
		file := documentFile(t, document("com.example/weather", "1.0.0"))
		ada.run(t, 3, "", "publish", file)
		ada.run(t, 3, "", "whoami")
		ada.run(t, 1, "wrong", "login", "--url", s.api, "--email", ada.email, "--password-stdin")
		out, _ := ada.run(t, 0, password+"\n", "login", "--url", s.api, "--email", " Ada@Example.com", "--password-stdin")
		if !strings.Contains(out, "UNVERIFIED") || !strings.Contains(out, "ada@example.com") {
			t.Errorf("login: %s", out)
		}
		if _, stderr := ada.run(t, 3, "", "publish", file); !strings.Contains(stderr, "step up") {
			t.Errorf("publish without trust: %s", stderr)
		}
		if _, stderr := ada.run(t, 3, password, "login", "--password-stdin", "--step-up", "email"); !strings.Contains(stderr, "--code") {
			t.Errorf("a step-up begins: %s", stderr)
		}
		ada.run(t, 1, "", "login", "--code", "none")
		if out, _ = ada.run(t, 0, "", "login", "--code", e.code(t, ada.email), "--trust-device"); !strings.Contains(out, "FULL_TRUST") {
			t.Errorf("the step-up's code: %s", out)
		}
		checkPublishing(t, ada, file)
		checkStatuses(t, ada)
		checkRefreshes(t, ada)
		checkLogout(t, s, ada)
	})
}

func checkPublishing(t *testing.T, ada *publisher, file string) {
	t.Helper()
	out, _ := ada.run(t, 0, "", "publish", file)
	if !strings.Contains(out, "com.example/weather  1.0.0    yes     active") {
		t.Errorf("publish: %s", out)
	}
	if _, stderr := ada.run(t, 1, "", "publish", file); !strings.Contains(stderr, "1.0.0") {
		t.Errorf("a version twice: %s", stderr)
	}
	doc := document("com.example/weather", "1.1.0")
	delete(doc, "$schema")
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name, Version, Status string
		IsLatest              bool
		Warnings              []struct{ Path, Message string }
	}
	out, _ = ada.run(t, 0, string(text), "publish", "-", "-o", "json")
	decode(t, out, &got)
	if got.Version != "1.1.0" || !got.IsLatest || len(got.Warnings) != 1 || got.Warnings[0].Path != "$schema" {
		t.Errorf("publish with a warning: %s", out)
	}
	broken := filepath.Join(t.TempDir(), "broken.json")
	write(t, broken, "{")
	if _, stderr := ada.run(t, 1, "", "publish", broken); !strings.HasPrefix(stderr, "tollgate: "+broken+": ") {
		t.Errorf("what is no document: %s", stderr)
	}
	if _, stderr := ada.run(t, 1, "{", "publish", "--validate-only", "-"); !strings.Contains(stderr, "the document on standard input: ") {
		t.Errorf("what is no document, typed: %s", stderr)
	}
	doc["version"], doc["description"] = "^1.2.0", ""
	file = documentFile(t, doc)
	if _, stderr := ada.run(t, 1, "", "publish", file); !strings.Contains(stderr, "version") || !strings.Contains(stderr, "description") {
		t.Errorf("a broken document: %s", stderr)
	}
	if out, _ := ada.run(t, 1, "", "publish", "--validate-only", file); !strings.Contains(out, "error") {
		t.Errorf("a broken document, checked: %s", out)
	}
	if _, stderr := ada.run(t, 1, "", "publish", documentFile(t, document("org.example/weather", "1.0.0"))); !strings.Contains(stderr, "org.example/weather") {
		t.Errorf("somebody else's namespace: %s", stderr)
	}
}

func checkStatuses(t *testing.T, ada *publisher) {
	t.Helper()
	out, _ := ada.run(t, 0, "", "status", "com.example/weather@1.0.0", "--set", "deprecated", "--message", "Use 1.1.0")
	if !strings.Contains(out, "deprecated") || !strings.Contains(out, "Use 1.1.0") {
		t.Errorf("status --set: %s", out)
	}
	out, _ = ada.run(t, 0, "", "status", "com.example/weather", "--set", "deleted", "-o", "json")
	var changed []struct{ Version, Status string }
	if decode(t, out, &changed); len(changed) != 2 || changed[0].Status != "deleted" {
		t.Errorf("status of all: %s", out)
	}
	if out, _ = ada.run(t, 0, "", "status", "com.example/weather"); strings.Count(out, "deleted") != 2 {
		t.Errorf("status of a server: %s", out)
	}
	for _, args := range [][]string{
		{"com.example/none"}, {"com.example/none@1.0.0"}, {"com.example/weather@9.0.0"}, {"com.example/none", "--set", "deleted"},
		{"com.example/weather", "--set", "deleted"},
	} {
		if _, stderr := ada.run(t, 1, "", append([]string{"status"}, args...)...); !strings.HasPrefix(stderr, "tollgate: "+args[0]+": ") {
			t.Errorf("status %v: %s", args, stderr)
		}
	}
	ada.run(t, 1, "", "status", "com.example/weather", "--set", "nonsense")
	if out, _ = ada.run(t, 0, "", "status"); !strings.Contains(out, "yes") || !strings.Contains(out, "FULL_TRUST") {
		t.Errorf("status: %s", out)
	}
}

// checkRefreshes wants commands that find the token over, all at once, to renew it once and to stay signed in.
func checkRefreshes(t *testing.T, ada *publisher) {
	t.Helper()
	before := ada.credentials(t)
	ada.outlive(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { ada.run(t, 0, "", "whoami") })
	}
	all.Wait()
	after := ada.credentials(t)
	if after.SignIn.Tokens.Refresh == before.SignIn.Tokens.Refresh || after.SignIn.Tokens.Access == before.SignIn.Tokens.Access {
		t.Error("the tokens were not renewed")
	}
}

func checkLogout(t *testing.T, s *service, ada *publisher) {
	t.Helper()
	access := ada.credentials(t).SignIn.Tokens.Access
	ada.run(t, 0, "", "logout")
	if c := ada.credentials(t); c.SignIn.Tokens != nil || len(c.DeviceTokens) != 1 {
		t.Errorf("after logout the file holds %+v", c)
	}
	call(t, "GET", s.api+"/auth/session", nil, "Authorization", "Bearer "+access).want(t, 401)
	ada.run(t, 3, "", "logout")
	ada.run(t, 3, "", "whoami")
	if out, _ := ada.run(t, 0, "", "status"); !strings.Contains(out, "(not signed in)") {
		t.Errorf("status after logout: %s", out)
	}
	out, _ := ada.run(t, 0, password, "login", "--password-stdin")
	if !strings.Contains(out, "FULL_TRUST") && !strings.Contains(out, "LIMITED_TRUST") { // as fast as this test signs in
		t.Errorf("login from a machine that is known: %s", out)
	}
}

// terminal is a command that somebody types at.
type terminal struct {
	t     *testing.T
	pty   *os.File
	cmd   *exec.Cmd
	lines chan string

	shown  strings.Builder
	looked int // how much of it was waited for already
}

func (p *publisher) open(t *testing.T, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command(filepath.Join(built, "tollgate"), args...)
	cmd.Env = p.environ
	return openTerminal(t, cmd)
}

func openTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	return openSized(t, cmd, nil)
}

func openSized(t *testing.T, cmd *exec.Cmd, size *pty.Winsize) *terminal {
	t.Helper()
	f, err := pty.StartWithSize(cmd, size)
	if err != nil {
		t.Fatal(err)
	}
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

// TestTablesAtTheTerminal wants no line wider than the terminal, and everything in one line elsewhere.
func TestTablesAtTheTerminal(t *testing.T) {
	e := newEnvironment(t, "embedded")
	e.newPerson(t, "ada@example.com", "publish com.example/a-rather-long-name-of-a-server-for-one-line-of-a-terminal")
	for _, args := range [][]string{{"settings"}, {"audit", "search"}, {"grant", "list"}} {
		cmd := exec.Command(filepath.Join(built, "tollgate"), args...)
		cmd.Env = e.environ
		wrapped, whole := openSized(t, cmd, &pty.Winsize{Rows: 25, Cols: 72}).end(0), e.tollgate(t, "", args...)
		for line := range strings.Lines(wrapped) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 72 {
				t.Errorf("%v: a line has %d columns: %s", args, n, line)
			}
		}
		if squeezed(wrapped) != squeezed(whole) && args[0] != "settings" { // where cells are wrapped beside each other
			t.Errorf("%v: the terminal shows\n%s\nand a file\n%s", args, wrapped, whole)
		}
	}
}

// squeezed leaves all blanks out.
func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

// await waits until the terminal shows a text that was not waited for before.
func (c *terminal) await(text string) {
	c.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		if i := strings.Index(c.shown.String()[c.looked:], text); i >= 0 {
			c.looked += i + len(text)
			return
		}
		select {
		case more, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the command ended without %q:\n%s", text, c.shown.String())
			}
			c.shown.WriteString(more)
		case <-deadline:
			c.t.Fatalf("the terminal never shows %q:\n%s", text, c.shown.String())
		}
	}
}

// answer waits for a prompt and types.
func (c *terminal) answer(prompt, line string) {
	c.t.Helper()
	c.await(prompt)
	if _, err := fmt.Fprintln(c.pty, line); err != nil {
		c.t.Fatal(err)
	}
}

// end waits for the command's end, and wants its exit code.
func (c *terminal) end(code int) string {
	c.t.Helper()
	for more := range c.lines {
		c.shown.WriteString(more)
	}
	_ = c.cmd.Wait() // the code tells
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("exit code %d, want %d:\n%s", got, code, c.shown.String())
	}
	return c.shown.String()
}

// TestPublisherAtTheTerminal is a publisher's day at a terminal, with a second factor.
func TestPublisherAtTheTerminal(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, append(registryEnviron(), "RISK_VELOCITY_SESSIONS=1000", "RISK_FAILED_FEW=0")...)
		ada := newPublisher(t, e.newPerson(t, "ada@example.com", "publish com.example/*"))
		file := documentFile(t, document("com.example/weather", "1.0.0"))

		c := ada.open(t, "login")
		c.answer("Address of the service: ", s.api)
		c.answer("E-mail: ", ada.email)
		c.answer("Password: ", password)
		c.await("Signed in at UNVERIFIED")
		c.answer("[email]: ", "none")
		ada.wantNoSecret(t, c.end(0))

		c = ada.open(t, "publish", file)
		c.answer("[email]: ", "")
		c.await("Code by email")
		wrong := "000000"
		if e.code(t, ada.email) == wrong {
			wrong = "111111"
		}
		_, _ = fmt.Fprintln(c.pty, wrong) // a failure shows in what follows
		first := e.code(t, ada.email)
		c.await("the code is wrong")
		c.answer("Code by email", "")
		c.await("Code by email")
		if e.code(t, ada.email) == first {
			t.Log("another code is the same as the first") // one in a million
		}
		_, _ = fmt.Fprintln(c.pty, e.code(t, ada.email)) // likewise
		c.await("com.example/weather")
		ada.wantNoSecret(t, c.end(0))

		app := e.enrol(t, ada.person)
		c = ada.open(t, "login", "--step-up", "none")
		c.answer("Password: ", password)
		c.answer("authenticator: ", "nonsense")
		c.answer("authenticator: ", app.code(t, 1))
		ada.wantNoSecret(t, c.end(0))
		_, stderr := ada.run(t, 3, password, "login", "--password-stdin")
		if !strings.Contains(stderr, "--mfa-code") {
			t.Errorf("login without the second factor: %s", stderr)
		}
		ada.run(t, 0, password, "login", "--password-stdin", "--mfa-code", app.recovery[0])

		c = ada.open(t, "login")
		c.await("Password: ")
		if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		c.await("interrupted")
		c.end(1)
		c = ada.open(t, "login")
		c.answer("Password: ", "abc\x03") // Ctrl-C
		c.await("interrupted")
		c.end(1)
	})
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestPublishingGuide types every command of docs/publishing.md at a terminal as it is written, but for the service's
// address and what is read from an e-mail.
func TestPublishingGuide(t *testing.T) {
	content, err := os.ReadFile("../../docs/publishing.md")
	if err != nil {
		t.Fatal(err)
	}
	e := newEnvironment(t, "embedded")
	s := e.start(t, "RISK_VELOCITY_SESSIONS=1000") // this test signs in faster than people do
	ada := newPublisher(t, e.newPerson(t, "ada@example.com", "publish com.example/*"))
	var script strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(string(content), -1) {
		script.WriteString(block[1])
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", strings.ReplaceAll(script.String(), "https://tollgate.example.com", s.api))
	cmd.Dir = t.TempDir()
	cmd.Env = append(ada.environ, "PATH="+built+":"+os.Getenv("PATH"))
	c := openTerminal(t, cmd)
	c.answer("Password: ", password)
	c.answer("[email]: ", "")
	c.await("Code by email")
	c.answer(": ", e.code(t, ada.email))
	for _, shown := range []string{
		"FULL_TRUST  everything, including publishing", "FULL_TRUST", "database ok", "server.json  ok",
		"com.example/weather  1.0.0    yes     active", `"version": "1.1.0"`, "deprecated  no", "com.example/weather  1.1.0    active",
		"Signed out of", "is waiting for its code by email", "exit code 3",
	} {
		c.await(shown)
	}
	c.answer("Code: ", e.code(t, ada.email))
	for _, shown := range []string{"FULL_TRUST", "com.example/weather  1.2.0    yes", "Signed out of", "FULL_TRUST  everything, including publishing"} {
		c.await(shown)
	}
	c.end(0)
}

// TestOperatorAtTheTerminal wants a password that is asked for not to be shown, and questions that can be interrupted.
func TestOperatorAtTheTerminal(t *testing.T) {
	e := newEnvironment(t, "embedded")
	open := func(args ...string) *terminal {
		cmd := exec.Command(filepath.Join(built, "tollgate"), args...)
		cmd.Env = e.environ
		return openTerminal(t, cmd)
	}
	add := []string{"user", "add", "--email", "ada@example.com", "--name", "Ada"}
	c := open(add...)
	c.answer("Password: ", password)
	c.answer("Repeat the password: ", "another")
	c.await("the two passwords differ")
	c.end(1)
	c = open(add...)
	c.answer("Password: ", password)
	c.answer("Repeat the password: ", password)
	if shown := c.end(0); strings.Contains(shown, password) || !strings.Contains(shown, "ada@example.com") {
		t.Errorf("user add shows %s", shown)
	}
	c = open("user", "enrol-mfa", "--email", "ada@example.com")
	c.await("█") // the QR code, which a pipe does not get
	c.await("otpauth://totp/")
	c.await("Code from the app: ")
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.await("interrupted")
	c.end(1)
}
