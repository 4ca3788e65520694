package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return files
}

// TestAlertsFire runs the scenarios of testdata with promtool.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool")
	}
	output, err := exec.CommandContext(t.Context(), promtool,
		append([]string{"test", "rules"}, scenarioFiles(t)...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestEveryAlertHasAScenario checks that each alert fires in one of the scenarios.
func TestEveryAlertHasAScenario(t *testing.T) {
	var all strings.Builder
	for _, file := range scenarioFiles(t) {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		all.Write(content)
	}
	for _, a := range loadRules(t).Alerts() {
		if !strings.Contains(all.String(), `labels: '{alertname="`+a.Name+`"`) {
			t.Errorf("%s fires in no scenario of testdata", a.Name)
		}
	}
}
