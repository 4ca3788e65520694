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

// TestCompletionOfStore checks that commands complete names from the database.
func TestCompletionOfStore(t *testing.T) {
	dir := newDatabase(t)
	for _, line := range []string{
		"user add --email ada@example.com --name Ada --password-stdin", "user add --email bea@example.com --name Bea --password-stdin",
		"view add partners --include com.example/*", "service-account set ci",
	} {
		if r := runCommand(t, dir, "Correct-Horse-7-Battery", strings.Fields(line)...); r.code != cli.ExitOK {
			t.Fatalf("%s: %+v", line, r)
		}
	}
	for line, want := range map[string]string{
		"user lock --email a": "ada@example.com", "session list --email x": "", "view remove p": "partners", "view remove ": "partners",
		"service-account remove ": "ci", "grant list --email b": "bea@example.com",
	} {
		args := append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)
		offered, _, _ := strings.Cut(runCommand(t, dir, "", args...).stdout, ":")
		if got := strings.TrimSpace(offered); got != want {
			t.Errorf("%s offers %q, want %q", line, got, want)
		}
	}
}
