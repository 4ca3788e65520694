package program

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// TestRiskLearn learns from a record in which a line is wrong, and from one without a mistake.
func TestRiskLearn(t *testing.T) {
	dir, start := t.TempDir(), time.Now().Add(-48*time.Hour)
	if r := runCommand(t, dir, "Correct-Horse-7-Battery\n", "user", "add", "--email", "anna@example.com", "--name",
		"Anna", "--password-stdin"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	line := func(email string, hours int, correct bool) string {
		return fmt.Sprintf(`{"id":1,"ts":%d,"email":%q,"userId":"7","ip":"203.0.113.1","passwordCorrect":%t,"stepUpPassed":true}`+"\n",
			start.Add(time.Duration(hours)*time.Hour).Unix(), email, correct)
	}
	good := line("Anna@example.com", 0, true) + line("anna@example.com", 1, false) + line("bob@example.com", 2, true) +
		line("anna@example.com", 9, true)
	for _, c := range []struct {
		stdin string
		code  int
		out   string
		says  string
	}{
		{good + line("anna@example.com", 3, true), cli.ExitFailed, "", "line 5: ts is before"},
		{good + "{}\n", cli.ExitFailed, "", "line 5: id "},
		{good, cli.ExitOK, `{"signIns":2,"people":1,"unknownSignIns":1,"unknownPeople":1}`, ""},
	} {
		r := runCommand(t, dir, c.stdin, "risk", "learn", "--output", "json", "-")
		if out := strings.Join(strings.Fields(r.stdout), ""); r.code != c.code || out != c.out ||
			!strings.Contains(r.stderr, c.says) {
			t.Errorf("%+v, want %+v", r, c)
		}
	}
	if r := runCommand(t, t.TempDir(), good, "risk", "learn", "-"); r.code != cli.ExitFailed {
		t.Errorf("without a database: %+v", r)
	}
}
