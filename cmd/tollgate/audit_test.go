package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestAuditSearch searches for the events of operator commands.
func TestAuditSearch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ada", "bob"} {
		add := []string{"user", "add", "--email", name + "@example.com", "--name", name, "--password-stdin"}
		if r := runCommand(t, dir, password, add...); r.code != exitOK {
			t.Fatalf("user add: %+v", r)
		}
		if r := runCommand(t, dir, "", "user", "unlock", "--email", name+"@example.com"); r.code != exitOK {
			t.Fatalf("user unlock: %+v", r)
		}
	}
	if r := runCommand(t, dir, "", "user", "lock", "--email", "ada@example.com"); r.code != exitOK {
		t.Fatalf("user lock: %+v", r)
	}
	search := func(args ...string) (actions string) {
		t.Helper()
		var list []auditEvent
		r := runCommand(t, dir, "", append([]string{"audit", "search", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || r.code != exitOK {
			t.Fatalf("audit search %v: %+v, %v", args, r, err)
		}
		lines := runCommand(t, dir, "", append([]string{"audit", "search", "-o", "jsonl"}, args...)...)
		for _, e := range list {
			actions += string(e.Email[:min(1, len(e.Email))]) + "-" + e.Details["action"].(string) + " "
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
		!strings.HasSuffix(lines[1], `ACCOUNT_CHANGE       ok      ada@example.com           {"action":"lock","actor":"operator"}`) {
		t.Errorf("audit search: %+v", r)
	}
	if r := runCommand(t, dir, "", "audit", "search", "--type", "LOGIN_ATTEMPT"); strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("a search without a match: %+v", r)
	}
	if r := runCommand(t, dir, "", "user", "show", "--email", "ada@example.com"); !strings.Contains(r.stdout, "state           locked") {
		t.Errorf("user show: %+v", r)
	}
}

// TestTimes also checks that --since includes events at its exact time.
func TestTimes(t *testing.T) {
	now := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"":                          {},
		"36h":                       now.Add(-36 * time.Hour),
		"2026-01-31":                time.Date(2026, time.January, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T10:20":          time.Date(2026, time.January, 31, 10, 20, 0, 0, time.UTC),
		"2026-01-31T10:20:30+02:00": time.Date(2026, time.January, 31, 8, 20, 30, 0, time.UTC),
	} {
		if got, err := parseTime("--since", s, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v (%v), want %v", s, got, err, want)
		}
	}
	f := auditFlags{since: "2026-01-31", limit: 1}
	if q, err := f.parseQuery(now); err != nil || !q.After.Equal(time.Date(2026, time.January, 30, 23, 59, 59, 999_999_000, time.UTC)) {
		t.Errorf("since a day: after %v (%v), want the first instant of the day included", q.After, err)
	}
}

// TestCompletion calls the hidden command that shells use for completion.
func TestCompletion(t *testing.T) {
	for want, line := range map[string][]string{
		"table json jsonl":            {"audit", "search", "--output", ""},
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
		if r := runCommand(t, t.TempDir(), "", "completion", shell); r.code != exitOK || !strings.Contains(r.stdout, "tollgate") {
			t.Errorf("completion %s: code %d, %s", shell, r.code, r.stderr)
		}
	}
}
