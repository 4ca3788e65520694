package settings_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

var (
	settingsRow = regexp.MustCompile(
		"(?m)^\\| (`[A-Z_`, ]+`) \\| (same|better|differs|missing) \\| (the same|`[A-Z_]+…?`) \\|")
	quoted = regexp.MustCompile("`([A-Z_]+)`")
)

// TestPeerTable requires that the table of docs/from-envoy-ratelimit.md is true, and that it has
// every variable of the Envoy rate limit service that the settings know.
func TestPeerTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-envoy-ratelimit.md")
	must.Succeed(t, err)
	vars, err := settings.Describe(nil)
	must.Succeed(t, err)
	ours := map[string]bool{}
	for _, v := range vars {
		ours[v.Name] = true
	}
	listed := map[string]bool{}
	for _, row := range settingsRow.FindAllStringSubmatch(string(page), -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			if listed[name[1]] {
				t.Errorf("%s is in the table twice", name[1])
			}
			listed[name[1]] = true
			checkPeerVariable(t, peerVariable{name[1], row[2], row[3]}, ours)
		}
	}
	if len(listed) < 122 {
		t.Errorf("the table has %d variables, want all", len(listed))
	}
	for _, name := range settings.PeerNames() {
		if !listed[name] {
			t.Errorf("the table lacks %s", name)
		}
	}
}

// peerVariable is a variable of the table.
type peerVariable struct{ name, verdict, ourName string }

// checkPeerVariable checks a row of the table against the settings.
func checkPeerVariable(t *testing.T, v peerVariable, ours map[string]bool) {
	t.Helper()
	if v.verdict == "missing" {
		s, err := settings.Read([]string{v.name + "=1"})
		if err != nil || len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], v.name+" is not used: ") {
			t.Errorf("%s: %v, warnings %q", v.name, err, s.Warnings)
		}
		return
	}
	if v.ourName == "the same" {
		if !ours[v.name] {
			t.Errorf("%s is not a setting", v.name)
		}
		return
	}
	mine := strings.Trim(v.ourName, "`")
	if prefix, ok := strings.CutSuffix(mine, "…"); ok { // KVSTORE_… for REDIS_URL is KVSTORE_URL
		_, rest, _ := strings.Cut(v.name, "_")
		mine = prefix + rest
	}
	if !ours[mine] {
		t.Errorf("%s, which the table gives for %s, is not a setting", mine, v.name)
	}
	// If both are set and differ, there is a warning. An error has our name.
	s, err := settings.Read([]string{v.name + "=1", mine + "=2"})
	switch {
	case err == nil && (len(s.Warnings) == 0 || !strings.HasPrefix(s.Warnings[0], mine+" and "+v.name)):
		t.Errorf("%s is not read as %s: warnings %q", v.name, mine, s.Warnings)
	case err != nil && !strings.Contains(err.Error(), strings.SplitN(mine, "_", 2)[0]):
		t.Errorf("%s: %v", v.name, err)
	}
}
