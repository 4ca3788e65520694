package program

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// TestCompletion calls the hidden command that shells use for completion.
func TestCompletion(t *testing.T) {
	for want, line := range map[string][]string{
		"table wide json jsonl yaml":  {"audit", "search", "--output", ""},
		"publish edit review operate": {"grant", "add", "--action", ""},
		"":                            {"user", "lock", "--email", ""},
		"registry auth methods ratelimit console": {"serve", "--only", ""},
	} {
		r := runCommand(t, t.TempDir(), "", append([]string{"__completeNoDesc"}, line...)...)
		offered, directive, _ := strings.Cut(r.stdout, ":")
		if got := strings.Join(strings.Fields(offered), " "); got != want || strings.TrimSpace(directive) != "4" {
			t.Errorf("%v offers %q with directive %q, want %q and no files", line, got, directive, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := runCommand(t, t.TempDir(), "", "completion", shell); r.code != cli.ExitOK ||
			!strings.Contains(r.stdout, "tollgate") {
			t.Errorf("completion %s: code %d, %s", shell, r.code, r.stderr)
		}
	}
}
