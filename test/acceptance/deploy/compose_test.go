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

	"github.com/tollgate-dev/tollgate/test/must"
)

// loadCompose parses the compose file with the loader of docker compose, which rejects unknown
// properties.
func loadCompose(t *testing.T, more ...string) *types.Project {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(deployFolder, "compose"))
	must.Succeed(t, err)
	var files []types.ConfigFile
	for _, name := range append([]string{"compose.yaml"}, more...) {
		files = append(files, types.ConfigFile{Filename: filepath.Join(folder, name)})
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: folder, ConfigFiles: files, Environment: types.Mapping{},
	})
	must.Succeed(t, err)
	return p
}

// TestCompose checks that secrets come from files, that ports are published on the loopback address
// only, and that each service starts after the services that it depends on are healthy.
func TestCompose(t *testing.T) {
	p := loadCompose(t, "mail.yaml")
	if mail := p.Services["mail"]; mail.NetworkMode != "service:tollgate" {
		t.Errorf("the mail catcher is in the network %q, and not on the host of the service", mail.NetworkMode)
	}
	for name, s := range p.Services {
		for variable := range s.Environment {
			if strings.HasSuffix(variable, "PASSWORD") || strings.HasSuffix(variable, "SECRET") {
				t.Errorf("%s: the environment contains the secret %s: use a file of secrets instead", name, variable)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %d is published to the network, want 127.0.0.1 only", name, port.Target)
			}
			if strconv.Itoa(int(port.Target)) == knownSettings(t)["DEBUG_PORT"].Default {
				t.Errorf("%s: the port of the debug listener is published", name)
			}
		}
		if s.Image == "" || strings.HasSuffix(s.Image, ":latest") || !strings.Contains(s.Image, ":") {
			t.Errorf("%s: the image %q has no version", name, s.Image)
		}
		for needed, how := range s.DependsOn {
			if s.NetworkMode == "service:"+needed {
				continue // the loader adds it; the host of a service is there before its programs
			}
			if how.Condition != types.ServiceConditionHealthy || p.Services[needed].HealthCheck == nil {
				t.Errorf("%s does not wait until %s is healthy", name, needed)
			}
		}
	}
	for name, s := range p.Secrets {
		if s.File == "" || filepath.Base(filepath.Dir(s.File)) != "secrets" {
			t.Errorf("the secret %s is not a file in the folder secrets, which git ignores", name)
		}
	}
	checkComposeService(t, loadCompose(t).Services["tollgate"]) // the mail catcher's settings have no password
	checkHealthCommand(t, p.Services["tollgate"].HealthCheck)
}

// checkHealthCommand checks that the health check runs the service's own program, the only one in
// the image, and that the program times out, and reports why, before the health check does.
func checkHealthCommand(t *testing.T, h *types.HealthCheckConfig) {
	t.Helper()
	if h == nil || h.Timeout == nil || len(h.Test) != 5 || h.Test[0] != "CMD" || h.Test[1] != installedPath ||
		h.Test[2] != "health" || h.Test[3] != "--timeout" {
		t.Fatalf("the health check is %+v, want CMD %s health --timeout DURATION", h, installedPath)
	}
	if own, err := time.ParseDuration(h.Test[4]); err != nil || own <= 0 || own >= time.Duration(*h.Timeout) {
		t.Errorf("the program times out after %s (%v), want less than the health check's %v", h.Test[4], err, h.Timeout)
	}
}

// checkComposeService checks the container of Tollgate: its settings, grace period, privileges and
// mounts.
func checkComposeService(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	values := map[string]string{}
	for name, value := range s.Environment {
		values[name] = *value
	}
	checkEnvironment(t, values)
	if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) <= shutdownTime(t, values) {
		t.Errorf("the service is killed after %v, but its shutdown may take %v", s.StopGracePeriod,
			shutdownTime(t, values))
	}
	if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) == 0 || len(s.Tmpfs) == 0 {
		t.Error("the service must have a read-only root, no capabilities, security options and a tmpfs")
	}
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind {
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("the source of the mount %s does not exist: %v", v.Target, err)
			}
		}
	}
}

// TestComposeSecrets runs secrets.sh twice in a temporary folder: the first run makes all secrets,
// the second run keeps them.
func TestComposeSecrets(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "secrets.sh")
	must.Succeed(t, os.WriteFile(script, []byte(readDeployFile(t, "compose", "secrets.sh")), 0o700))
	makeSecrets := func() map[string]string {
		if out, err := exec.Command("sh", script).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		texts := map[string]string{}
		for name := range loadCompose(t).Secrets {
			text, err := os.ReadFile(filepath.Join(dir, "secrets", name))
			must.Succeed(t, err)
			texts[name] = string(text)
		}
		return texts
	}
	first := makeSecrets()
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of secrets has the mode %v, want 0700: %v", info, err)
	}
	seen := map[string]bool{}
	for name, text := range makeSecrets() {
		if text != first[name] || seen[text] || len(text) < 64 || strings.ContainsAny(text, " \n") {
			t.Errorf(
				"the secret %s is %q after the second run, %q after the first; want the same, distinct, of 64 bytes or more", name, text, first[name])
		}
		seen[text] = true
	}
	if !strings.Contains(first["database_url"], first["postgres_password"]) {
		t.Error("database_url does not contain the password of PostgreSQL")
	}
}
