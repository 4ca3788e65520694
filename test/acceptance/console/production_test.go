package console

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestProductionExample starts the service with the example of docs/examples/production. As it is,
// it is refused, because the secrets are missing. With secrets and the addresses of the test, the
// service is ready, warns of nothing, and prints the address of the setup below its public URL.
func TestProductionExample(t *testing.T) {
	needServers(t)
	t.Parallel()
	dir := t.TempDir()
	variables := readExample(t)
	for _, missing := range []string{"DATABASE_URL", "KVSTORE_AUTH", "SECRET_KEY"} {
		if name := variables[missing+"_FILE"]; !strings.Contains(refusal(t, environ(variables)), missing+"_FILE: ") {
			t.Errorf("without the file %s the service says %s", name, refusal(t, environ(variables)))
		}
		fixture.WriteFile(t, filepath.Join(dir, missing), "CHANGE-ME")
		variables[missing+"_FILE"] = filepath.Join(dir, missing)
	}
	if said := refusal(t, environ(variables)); !strings.Contains(said, "SECRET_KEY") {
		t.Errorf("with secrets that are none the service says %s", said)
	}
	for name, text := range map[string]string{
		"DATABASE_URL": postgrestest.NewEmpty(t), "SECRET_KEY": strings.Repeat("0123456789abcdef", 4),
		"signing/1.pem": newSigningKey(t), "rules/config/a.yaml": fixture.RateLimitRules,
	} {
		must.Succeed(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		fixture.WriteFile(t, filepath.Join(dir, name), text)
	}
	for name, value := range map[string]string{
		"SIGNING_KEYS_DIR": filepath.Join(dir, "signing"), "RUNTIME_ROOT": filepath.Join(dir, "rules"), "DATA_DIR": filepath.Join(dir, "data"),
		"KVSTORE_URL": os.Getenv("TEST_VALKEY_URL"), "KVSTORE_TLS": "false", "SHUTDOWN_DRAIN": "0s",
	} {
		if variables[name] == "" {
			t.Errorf("%s is not in the example any more", name)
		}
		variables[name] = value
	}
	delete(variables, "KVSTORE_AUTH_FILE") // Valkey of the tests has no password
	if said := refusal(t, onThisMachine(variables, filepath.Base(filepath.Dir(dir)))); !strings.Contains(said, "SMTP_PASSWORD_FILE: ") {
		t.Errorf("without the password of the mail server the service says %s", said)
	}
	variables["SMTP_PASSWORD_FILE"] = filepath.Join(dir, "SMTP_PASSWORD")
	fixture.WriteFile(t, variables["SMTP_PASSWORD_FILE"], "the-password")
	s := fixture.Launch(t, "serve", onThisMachine(variables, filepath.Base(filepath.Dir(dir))))
	s.AwaitRules()
	s.AwaitLog(`"setup":"https://tollgate.example.com/console/setup?code=`)
	apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK)
	for line := range strings.Lines(s.Process.Log()) {
		if strings.Contains(line, `"level":"warning"`) && !strings.Contains(line, `"setup":`) &&
			!strings.Contains(line, "PLUGIN_DIR has no") { // the tests build few plugins
			t.Errorf("the service warns: %s", line)
		}
	}
}

// readExample returns the settings of the example.
func readExample(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/examples/production/tollgate.env")
	must.Succeed(t, err)
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(name, "#") {
			variables[name] = strings.Trim(value, `"`)
		}
	}
	return variables
}

// environ returns variables as NAME=value.
func environ(variables map[string]string) (list []string) {
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	return list
}

// refusal returns what the service says that does not start.
func refusal(t *testing.T, environ []string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(fixture.BinDir, "tollgate"), "serve")
	c.Env = environ
	said, err := c.CombinedOutput()
	if err == nil {
		t.Error("the service ended without an error")
	}
	return string(said)
}

func newSigningKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must.Succeed(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must.Succeed(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
