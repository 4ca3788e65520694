package settings_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

var (
	settingsRow = regexp.MustCompile("(?m)^\\| (`[A-Z_`, ]+`) \\| (as it is|as `[A-Z_]+`|ignored, with a warning) \\|")
	quoted      = regexp.MustCompile("`([A-Z_]+)`")
)

// TestPeerTable wants the table of docs/from-envoy-ratelimit.md to be true of
// each variable of the Envoy rate limit service.
func TestPeerTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-envoy-ratelimit.md")
	if err != nil {
		t.Fatal(err)
	}
	vars, err := settings.Describe(nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, v := range vars {
		ours[v.Name] = true
	}
	told := 0
	for _, row := range settingsRow.FindAllStringSubmatch(string(page), -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			told++
			checkPeerVariable(t, name[1], row[2], ours)
		}
	}
	if told < 119 {
		t.Errorf("the table has %d variables, want all", told)
	}
}

func checkPeerVariable(t *testing.T, name, outcome string, ours map[string]bool) {
	t.Helper()
	if outcome == "as it is" {
		if !ours[name] {
			t.Errorf("%s is no setting", name)
		}
		return
	}
	s, err := settings.Read([]string{name + "=1"})
	if outcome == "ignored, with a warning" {
		if err != nil || len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], name+" is not used: ") {
			t.Errorf("%s: %v, warnings %q", name, err, s.Warnings)
		}
		return
	}
	mine := quoted.FindStringSubmatch(outcome)[1]
	if !ours[mine] {
		t.Errorf("%s, which %s is said to be, is no setting", mine, name)
	}
	// Both set and different is a warning, and malformed ones are named by ours.
	s, err = settings.Read([]string{name + "=1", mine + "=2"})
	switch {
	case err == nil && (len(s.Warnings) == 0 || !strings.HasPrefix(s.Warnings[0], mine+" and "+name)):
		t.Errorf("%s is not read as %s: warnings %q", name, mine, s.Warnings)
	case err != nil && !strings.Contains(err.Error(), strings.SplitN(mine, "_", 2)[0]):
		t.Errorf("%s: %v", name, err)
	}
}
