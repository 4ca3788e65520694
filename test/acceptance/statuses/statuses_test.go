package statuses

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestStatuses sends every request of routes and forms as every caller, and compares the answers
// and the audit log with testdata. It uses SQLite alone: the stores have tests of their own.
func TestStatuses(t *testing.T) {
	s := newSite(t)
	compare(t, "api.golden", s.callAll(t, "publish.txt", "others.txt"))
	compare(t, "console.golden", s.sendForms(t))
	compare(t, "audit.golden", countRepeated(s.readAudit(t)))
}

// TestStatusesWithWritesOff sends the requests to change a server while writes are off.
func TestStatusesWithWritesOff(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, fixture.RegistrySettings()...)
	s := &site{t: t, e: e, Service: e.Start(t, "REGISTRY_WRITES=off")}
	full := e.NewWriter(t, s.Service, "ada@example.com", grants()...)
	s.callers = []caller{
		{"no token", nil}, {"bad token", []string{"Authorization", "Bearer x"}}, {"FULL_TRUST", full.Bearer()},
	}
	compare(t, "writesoff.golden", s.callAll(t, "publish.txt"))
}

// compare compares lines with a golden file, or writes it.
func compare(t *testing.T, file string, lines []string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	got := strings.Join(lines, "\n") + "\n"
	if *fixture.Update {
		must.Succeed(t, os.MkdirAll("testdata", 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	content, err := os.ReadFile(path)
	must.Succeed(t, err)
	want := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if len(want) != len(lines) {
		t.Errorf("%s has %d lines, want %d", file, len(lines), len(want))
	}
	for i, shown := 0, 0; i < min(len(want), len(lines)) && shown < 20; i++ {
		if want[i] != lines[i] {
			shown++
			t.Errorf("%s:%d\n got %s\nwant %s", file, i+1, lines[i], want[i])
		}
	}
}

// unstable are the parts of an answer that differ in each run.
var unstable = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`\d{1,2}[ \x{a0}]\w{3}[ \x{a0}]\d{4}, \d\d:\d\d[ \x{a0}]UTC`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "<hash>"},
	{regexp.MustCompile(`\btg[ps]_[0-9A-Za-z]{8}\b`), "<prefix>"},
	{regexp.MustCompile(`ed25519:[A-Za-z0-9+/]{8}`), "<key>"},
	{regexp.MustCompile(`"?(?:timestamp|requests)(?:":|>)\d+`), "<count>"},
	{regexp.MustCompile(`\b(?:open|wait)-[a-z-]*\d+`), "<server>"},
	{regexp.MustCompile(`\bview (?:name )?v\d+|/v\d+`), "<view>"},
	{regexp.MustCompile(`localhost:\d+|127\.0\.0\.1:\d+`), "<host>"},
}

// stable replaces what differs in each run.
func stable(text string) string {
	for _, u := range unstable {
		text = u.pattern.ReplaceAllString(text, u.name)
	}
	return strings.Join(strings.Fields(text), " ")
}

// answers are the answers to one request in one variant, with the callers who got each, in the
// order in which the first of them did.
type answers struct {
	request string
	texts   []string
	callers map[string][]string
}

func (a *answers) add(caller, answer string) {
	if a.callers == nil {
		a.callers = map[string][]string{}
	}
	if a.callers[answer] == nil {
		a.texts = append(a.texts, answer)
	}
	a.callers[answer] = append(a.callers[answer], caller)
}

// lines returns a line for each answer.
func (a *answers) lines() (lines []string) {
	for _, text := range a.texts {
		lines = append(lines, a.request+" | "+strings.Join(a.callers[text], ", ")+" | "+text)
	}
	return lines
}

// allLines returns the lines of the answers to several requests.
func allLines(all []answers) (lines []string) {
	for i := range all {
		lines = append(lines, all[i].lines()...)
	}
	return lines
}

// readAudit returns the audit events that the requests have left, but for those of sign-ins.
func (s *site) readAudit(t *testing.T) (lines []string) {
	t.Helper()
	query := "SELECT type, user_id IS NOT NULL, success, details FROM audit_events WHERE type IN " +
		"('REGISTRY_CHANGE', 'ACCOUNT_CHANGE', 'PUBLISHER_PROOF', 'ACCESS_REFUSED', 'METHODS_CHANGE') ORDER BY time, id"
	rows, err := s.e.OpenDatabase(t).QueryContext(context.Background(), query)
	must.Succeed(t, err)
	defer rows.Close()
	for rows.Next() {
		var kind, details string
		var person, success bool
		must.Succeed(t, rows.Scan(&kind, &person, &success, &details))
		lines = append(lines,
			fmt.Sprintf("%s | person %t | success %t | %s", kind, person, success, stable(describe(t, details))))
	}
	must.Succeed(t, rows.Err())
	return lines
}

// countRepeated returns each line once for a series of the same, with their number.
func countRepeated(lines []string) (counted []string) {
	for from := 0; from < len(lines); {
		to := from + 1
		for to < len(lines) && lines[to] == lines[from] {
			to++
		}
		counted = append(counted, fmt.Sprintf("%d x %s", to-from, lines[from]))
		from = to
	}
	return counted
}

// describe returns the members of a JSON object in the order of their names.
func describe(t *testing.T, object string) string {
	t.Helper()
	var members map[string]any
	fixture.DecodeJSON(t, object, &members)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, members[name]))
	}
	return strings.Join(parts, ", ")
}

var requiredLevel = regexp.MustCompile(`acr_values="([A-Z_]+)"`)

// errorOf returns the error in the answer of the API, with the trust level that it requests.
func errorOf(a apiclient.Response) string {
	var said struct{ Error, Message string }
	text := ""
	switch {
	case a.Status < http.StatusBadRequest:
	case json.Unmarshal(a.Body, &said) == nil && said.Error != "":
		text = strings.TrimSpace(said.Error + " " + said.Message)
	default:
		text = string(a.Body)
	}
	if level := requiredLevel.FindStringSubmatch(a.Header.Get("WWW-Authenticate")); level != nil {
		text += " (needs " + level[1] + ")"
	}
	if kept := a.Header.Get("Cache-Control"); kept != "" {
		text += " [" + kept + "]"
	}
	return stable(text)
}
