package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// project loads the compose file as the tool does, which refuses what the specification does not have.
func project(t *testing.T) *types.Project {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(folder, "compose", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path}}, Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCompose wants secrets in files only, ports on this machine only, and nothing that starts before what it needs.
func TestCompose(t *testing.T) {
	p := project(t)
	for name, s := range p.Services {
		for variable := range s.Environment {
			if strings.HasSuffix(variable, "PASSWORD") || strings.HasSuffix(variable, "SECRET") {
				t.Errorf("%s: %s stands in the open", name, variable)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %d is open to the network", name, port.Target)
			}
			if strconv.Itoa(int(port.Target)) == known(t)["DEBUG_PORT"].Default {
				t.Errorf("%s: the debug listener is published", name)
			}
		}
		if s.Image == "" || strings.HasSuffix(s.Image, ":latest") || !strings.Contains(s.Image, ":") {
			t.Errorf("%s: the image %q names no version", name, s.Image)
		}
		for needed, how := range s.DependsOn {
			if how.Condition != types.ServiceConditionHealthy || p.Services[needed].HealthCheck == nil {
				t.Errorf("%s starts before %s is healthy", name, needed)
			}
		}
	}
	for name, s := range p.Secrets {
		if s.File == "" || filepath.Base(filepath.Dir(s.File)) != "secrets" {
			t.Errorf("the secret %s is no file of the folder that git leaves alone", name)
		}
	}
	checkOurs(t, p.Services["tollgate"])
	checkHealth(t, p.Services["tollgate"].HealthCheck)
}

// checkHealth wants the service asked by its own program, the only one in the image, and so that the program says what is wrong
// before it is given up on.
func checkHealth(t *testing.T, h *types.HealthCheckConfig) {
	t.Helper()
	if h == nil || h.Timeout == nil || len(h.Test) != 5 || h.Test[0] != "CMD" || h.Test[1] != executable || h.Test[2] != "health" || h.Test[3] != "--timeout" {
		t.Fatalf("the service is asked by %+v", h)
	}
	if own, err := time.ParseDuration(h.Test[4]); err != nil || own <= 0 || own >= time.Duration(*h.Timeout) {
		t.Errorf("the program waits %s (%v), and is waited for %v", h.Test[4], err, h.Timeout)
	}
}

func checkOurs(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	values := map[string]string{}
	for name, value := range s.Environment {
		values[name] = *value
	}
	checkEnvironment(t, values)
	if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) <= shutdown(t, values) {
		t.Errorf("the service is killed after %v, and may need %v", s.StopGracePeriod, shutdown(t, values))
	}
	if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) == 0 || len(s.Tmpfs) == 0 {
		t.Error("the service may change more than it needs")
	}
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind {
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("what is mounted at %s is not here: %v", v.Target, err)
			}
		}
	}
}

// TestComposeSecrets makes secrets in a copy of the folder. A second time it leaves them as they are.
func TestComposeSecrets(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "secrets.sh")
	if err := os.WriteFile(script, []byte(read(t, "compose", "secrets.sh")), 0o700); err != nil {
		t.Fatal(err)
	}
	made := func() map[string]string {
		if out, err := exec.Command("sh", script).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		texts := map[string]string{}
		for name := range project(t).Secrets {
			text, err := os.ReadFile(filepath.Join(dir, "secrets", name))
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
		return texts
	}
	first := made()
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is open: %v, %v", info, err)
	}
	seen := map[string]bool{}
	for name, text := range made() {
		if text != first[name] || seen[text] || len(text) < 64 || strings.ContainsAny(text, " \n") {
			t.Errorf("the secret %s is %q, before %q", name, text, first[name])
		}
		seen[text] = true
	}
	if !strings.Contains(first["database_url"], first["postgres_password"]) {
		t.Error("the database's password is another")
	}
}
