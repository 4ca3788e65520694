package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestQuickstart runs every command of docs/quickstart.md as it is written,
// but for the start of the service, which is up already at other ports, and
// for what a person reads and types.
func TestQuickstart(t *testing.T) {
	content, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	e := newEnvironment(t, "embedded")
	s := e.start(t, "RUNTIME_ROOT="+absolute(t, "../../docs/examples/ratelimit"))
	var script strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(string(content), -1) {
		if block[1] != "make run\n" {
			script.WriteString(block[1])
		}
	}
	lastCode := fmt.Sprintf(`CODE=$(tail -n 1 %s | sed 's/.*"code":"\([0-9]*\)".*/\1/')`, e.otpLog)
	commands := strings.NewReplacer(
		"localhost:3000", s.process.API, "localhost:8080", s.process.RateLimitHTTP, "localhost:6070", s.process.Debug,
		"read -rp 'Code: ' CODE", lastCode,
		"ratelimit-client ", "ratelimit-client -dial_string "+s.grpc+" ",
	).Replace(script.String())
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = t.TempDir()
	if err := os.Symlink(built, filepath.Join(cmd.Dir, "bin")); err != nil {
		t.Fatal(err)
	}
	cmd.Env = e.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, printed := range []string{
		"ada@example.com  publish  com.example/*", `"trustLevel":"UNVERIFIED"`,
		"this needs a session at FULL_TRUST, this one is at UNVERIFIED: step up", `"newTrustLevel":"FULL_TRUST"`,
		`"isLatest":true`, `"metadata":{"count":1}`, `"requestsPerUnit":20,"unit":"DAY"},"limitRemaining":19`,
		`"overallCode": "OVER_LIMIT"`, "exit code 1", `"method_id":1103`, `"status":"ok"`, "KVSTORE_URL",
	} {
		if !strings.Contains(string(out), printed) {
			t.Errorf("the commands did not print %s", printed)
		}
	}
	if t.Failed() {
		t.Logf("they printed:\n%s", out)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}
