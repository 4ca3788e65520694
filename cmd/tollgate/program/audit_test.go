package program

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/operator"
)

// TestAuditSearch searches for the events of operator commands.
func TestAuditSearch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ada", "bob"} {
		add := []string{"user", "add", "--email", name + "@example.com", "--name", name, "--password-stdin"}
		if r := runCommand(t, dir, password, add...); r.code != cli.ExitOK {
			t.Fatalf("user add: %+v", r)
		}
		if r := runCommand(t, dir, "", "user", "unlock", "--email", name+"@example.com"); r.code != cli.ExitOK {
			t.Fatalf("user unlock: %+v", r)
		}
	}
	if r := runCommand(t, dir, "", "user", "lock", "--email", "ada@example.com"); r.code != cli.ExitOK {
		t.Fatalf("user lock: %+v", r)
	}
	search := func(args ...string) (actions string) {
		t.Helper()
		var list []operator.AuditEvent
		r := runCommand(t, dir, "", append([]string{"audit", "search", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || r.code != cli.ExitOK {
			t.Fatalf("audit search %v: %+v, %v", args, r, err)
		}
		lines := runCommand(t, dir, "", append([]string{"audit", "search", "-o", "jsonl"}, args...)...)
		for _, e := range list {
			actions += string(e.Email[:min(1, len(e.Email))]) + "-" + e.Details.Text("action") + " "
			if one, err := json.Marshal(e); err != nil || !strings.Contains(lines.stdout, string(one)+"\n") {
				t.Errorf("the lines %q lack %s (%v)", lines.stdout, one, err)
			}
		}
		return strings.TrimSpace(actions)
	}
	tomorrow := time.Now().Add(24 * time.Hour).Format(time.DateOnly)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "a-lock b-unlock -add a-unlock -add"},
		{[]string{"--limit", "2"}, "a-lock b-unlock"},
		{[]string{"--limit", "0", "--since", "1h"}, "a-lock b-unlock -add a-unlock -add"},
		{[]string{"--email", "bob@example.com"}, "b-unlock"},
		{[]string{"--type", "ACCOUNT_CHANGE", "--until", tomorrow}, "a-lock b-unlock -add a-unlock -add"},
		{[]string{"--type", "LOGIN_ATTEMPT"}, ""},
		{[]string{"--since", tomorrow}, ""},
		{[]string{"--until", "1h"}, ""},
		{[]string{"--user", noID}, ""},
	} {
		if got := search(c.args...); got != c.want {
			t.Errorf("audit search %v found %q, want %q", c.args, got, c.want)
		}
	}
	r := runCommand(t, dir, "", "audit", "search", "--email", "ada@example.com")
	if lines := strings.Split(r.stdout, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "TIME  ") ||
		!strings.HasSuffix(lines[1],
			`ACCOUNT_CHANGE       ok      ada@example.com           {"action":"lock","actor":"operator",`+
				`"changes":{"state":["active","locked"]},"key":"ada@example.com","kind":"person"}`) {
		t.Errorf("audit search: %+v", r)
	}
	if r := runCommand(t, dir, "", "audit", "search", "--type", "LOGIN_ATTEMPT"); strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("a search without a match: %+v", r)
	}
	if r := runCommand(t, dir, "", "user", "show", "--email", "ada@example.com"); !strings.Contains(r.stdout,
		"state           locked") {
		t.Errorf("user show: %+v", r)
	}
}
