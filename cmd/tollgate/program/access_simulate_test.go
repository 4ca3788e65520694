package program

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// decisions is a log: a line of something else, calls of a person, a service account and a caller without
// a token, and one that no rule decides.
const decisions = `{"@message":"tollgate is ready","@timestamp":"2026-11-27T12:00:00Z","level":"info"}
{"@message":"a call of a server was decided","@timestamp":"2026-11-27T12:00:00Z","effect":"allow","reason":"rule","rule":"all","subject":"person:ada@example.com","server":"com.example/weather","method":"tools/call","tool":"rm","trust":"FULL_TRUST","address":"10.0.0.1"}
{"@message":"a call of a server was decided","@timestamp":"2026-11-27T12:00:01Z","effect":"allow","reason":"rule","rule":"all","subject":"person:ada@example.com","server":"com.example/weather","method":"tools/call","tool":"rm","trust":"FULL_TRUST","address":"10.0.0.1"}
{"@message":"a call of a server was decided","@timestamp":"2026-11-27T12:00:02Z","effect":"allow","reason":"rule","rule":"all","subject":"service:ci","server":"com.example/weather","method":"tools/list","trust":"FULL_TRUST"}
{"@message":"a call of a server was decided","@timestamp":"2026-11-27T12:00:03Z","effect":"challenge","reason":"default","server":"com.example/weather","method":"tools/list"}
{"@message":"a call of a server was decided","@timestamp":"2026-11-27T12:00:04Z","effect":"deny","reason":"not_listed","server":"com.example/none"}
{"@message":"a call of a server was decided","@timestamp":"2026-11-27T12:00:05Z","effect":"deny","reason":"default","subject":"person:bob@example.com","server":"org.other/x","method":"tools/list"}
`

// The sets of rules: the new one denies a tool, opens a method to anyone, and one server to a group.
const (
	oldRules = `{"apiVersion": "tollgate.dev/v1", "kind": "State", "accessRules": [
		{"name": "all", "order": 9, "effect": "allow", "subjects": ["everyone"], "servers": ["com.example/*"]}]}`
	newRules = `{"apiVersion": "tollgate.dev/v1", "kind": "State", "accessRules": [
		{"name": "all", "order": 9, "effect": "allow", "subjects": ["everyone"], "servers": ["com.example/*"]},
		{"name": "rm", "order": 1, "effect": "deny", "subjects": ["everyone"], "servers": ["*"], "tools": ["rm"]},
		{"name": "lists", "order": 2, "effect": "allow", "subjects": ["anyone"], "servers": ["com.example/*"], "methods": ["tools/list"]},
		{"name": "team", "order": 3, "effect": "allow", "subjects": ["group:acme/dev"], "servers": ["org.other/*"]}]}`
)

// TestAccessSimulate compares two sets of rules about a log, from a file and from standard input.
func TestAccessSimulate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"old/rules.json": oldRules, "new.json": newRules, "decisions.log": decisions, "text.log": "level=info\n",
		"wrong.log":  `{"@message":"a call of a server was decided","reason":"rule","server":"x"}` + "\n",
		"wrong.json": `{"apiVersion": "tollgate.dev/v1", "kind": "State", "accessRules": [{"name": "A"}]}`,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	simulate := func(stdin string, args ...string) result {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), cli.Process{
			Args: append([]string{"access", "simulate", "--old", at("old")}, args...), Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		})
		return result{code, strings.Join(strings.Fields(stdout.String()), " "), stderr.String()}
	}
	const table = "CALLS SKIPPED SAME UNCERTAIN NEWLY ALLOWED NO LONGER ALLOWED OTHERWISE REFUSED 6 1 1 1 1 2 0 " +
		"CALLS SUBJECT SERVER METHOD TOOL OLD OLD RULE NEW NEW RULE " +
		"2 person:ada@example.com com.example/weather tools/call rm allow all deny rm " +
		"1 com.example/weather tools/list challenge allow lists"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string // of standard output, or a part of standard error
	}{
		"a file":         {"", []string{"--new", at("new.json"), at("decisions.log")}, cli.ExitOK, table},
		"standard input": {decisions, []string{"--new", at("new.json"), "-"}, cli.ExitOK, table},
		"few enough":     {"", []string{"--new", at("new.json"), "--max-new-denials", "2", at("decisions.log")}, cli.ExitOK, table},
		"too many":       {"", []string{"--new", at("new.json"), "--max-new-denials", "1", at("decisions.log")}, cli.ExitLimit, "no longer allow 2 calls"},
		"the same rules": {
			"", []string{"--new", at("old"), "--max-new-denials", "0", at("decisions.log")}, cli.ExitOK,
			"CALLS SKIPPED SAME UNCERTAIN NEWLY ALLOWED NO LONGER ALLOWED OTHERWISE REFUSED 6 1 5 0 0 0 0",
		},
		"a text log":   {"", []string{"--new", at("old"), at("text.log")}, cli.ExitFailed, "line 1 is not JSON of a log: set LOG_FORMAT=json"},
		"a wrong line": {"", []string{"--new", at("old"), at("wrong.log")}, cli.ExitFailed, "line 1: "},
		"wrong rules":  {"", []string{"--new", at("wrong.json"), at("decisions.log")}, cli.ExitFailed, "accessRules[0]"},
		"no log":       {"", []string{"--new", at("old"), at("none.log")}, cli.ExitFailed, "log of decisions"},
	} {
		r := simulate(c.stdin, c.args...)
		if got := r.stdout; r.code != c.code || c.code == cli.ExitOK && got != c.want || !strings.Contains(got+r.stderr, c.want) {
			t.Errorf("%s: code %d, got\n%s\n%s\nwant\n%s", name, r.code, got, r.stderr, c.want)
		}
	}
	if r := simulate("", "--new", at("new.json"), "--output", "json", at("decisions.log")); !strings.Contains(r.stdout, `"newlyDenied": 2`) ||
		!strings.Contains(r.stdout, `"oldRule": "all"`) {
		t.Errorf("as JSON: %+v", r)
	}
}
