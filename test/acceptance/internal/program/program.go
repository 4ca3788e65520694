// Package program runs MCP clients that people use, Codex and Claude Code, and signs in with them.
package program

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/tollgate-dev/tollgate/test/must"
)

// Program is an MCP client that people use, with a home of its own.
type Program struct{ path, home string }

// New returns the program whose file a variable of the environment names. It skips the test without that.
func New(t *testing.T, variable string) *Program {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip("needs Codex and Claude Code, which have 800 MB: set TEST_CODEX and TEST_CLAUDE_CODE to their files")
	}
	return &Program{path, t.TempDir()}
}

func (p *Program) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), p.path, arguments...)
	c.Dir = p.home
	c.Env = []string{
		"HOME=" + p.home, "CODEX_HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "BROWSER=true", "DISPLAY=:0",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	}
	return c
}

// Run runs the program, and returns what it has written.
func (p *Program) Run(t *testing.T, arguments ...string) string {
	t.Helper()
	text, err := p.command(t, arguments...).CombinedOutput()
	must.Succeed(t, err)
	return string(text)
}

// SignIn runs the program in a terminal, opens the first address that it writes and that an expression describes, and
// returns what it has written.
func (p *Program) SignIn(t *testing.T, address *regexp.Regexp, open func(address string), arguments ...string) string {
	t.Helper()
	c := p.command(t, arguments...)
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 50, Cols: 4000})
	must.Succeed(t, err)
	defer func() { _ = terminal.Close() }() // the program has ended
	var text strings.Builder
	opened := false
	for part := make([]byte, 1<<16); ; {
		n, err := terminal.Read(part)
		text.Write(part[:n])
		if err != nil { // the program has ended
			_ = c.Wait() // its text says whether it has failed
			return text.String()
		}
		if found := address.FindString(text.String()); found != "" && !opened {
			opened = true
			open(found)
		}
	}
}
