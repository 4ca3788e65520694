package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func situations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no situations: %v", err)
	}
	return files
}

// TestAlertsFire has Prometheus' own tool play situations through the rules.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool")
	}
	said, err := exec.CommandContext(t.Context(), promtool, append([]string{"test", "rules"}, situations(t)...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestEveryAlertHasASituation wants each alert to fire in one of them.
func TestEveryAlertHasASituation(t *testing.T) {
	var all strings.Builder
	for _, file := range situations(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	for _, a := range rules(t).Alerts() {
		if !strings.Contains(all.String(), `labels: '{alertname="`+a.Name+`"`) {
			t.Errorf("%s fires in no situation of testdata", a.Name)
		}
	}
}
