package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/pquerna/otp/totp"
	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

// TestCompose starts the service with the environment and the command of the published compose file
// and of its image. No courier is configured there: a person is set up, adds an authenticator app,
// signs in anew, steps up with the app, and publishes.
func TestCompose(t *testing.T) {
	if os.Getenv("TEST_DATABASE_URL") == "" || os.Getenv("TEST_VALKEY_URL") == "" {
		t.Skip("needs TEST_DATABASE_URL and TEST_VALKEY_URL")
	}
	t.Parallel()
	s := fixture.Launch(t, "serve", composeEnvironment(t))
	s.AwaitRules()
	s.AwaitLog(`"setup":`)
	link := regexp.MustCompile(`"setup":"http://localhost:[0-9]+(/console/setup\?code=[^"]+)"`).
		FindStringSubmatch(s.Process.Log())
	if link == nil {
		t.Fatal("the log has no address of the setup")
	}

	b := newBrowser(t, s)
	b.open("/console/", http.StatusOK)
	b.wantText("setup=")
	b.open(link[1], http.StatusOK)
	b.press("Make the account", http.StatusOK, "email", "ada@example.com", "name", "Ada", "password", fixture.Password)
	b.wantPath("/console/operator/setup")
	b.wantText("A courier for e-mail", "OTP_EMAIL_PLUGIN=otp-email", "Your authenticator app", "PUBLIC_URL", "pg_dump")
	b.follow("Set up an authenticator app", http.StatusOK)
	b.press("Set up an authenticator app", http.StatusOK)
	secret := strings.ReplaceAll(b.field("secret"), " ", "")
	code := func(steps int) string {
		code, err := totp.GenerateCode(secret, time.Now().Add(time.Duration(steps)*30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	b.press("Turn it on", http.StatusOK, "code", code(0))
	recovery := textOf(find(b.page.root, func(n *html.Node) bool { return n.Data == "code" }))
	b.open("/console/operator/setup", http.StatusOK)
	b.wantNoText("Your authenticator app")

	// A code of the app is good once, so the new sign-in takes a recovery code.
	anew := newBrowser(t, s)
	anew.open("/console/sign-in?next=/console/publish", http.StatusOK)
	anew.press("Sign in", http.StatusOK, "email", "ada@example.com", "password", fixture.Password)
	anew.press("Continue", http.StatusOK, "code", recovery)
	anew.open("/console/step-up?next=/console/publish", http.StatusOK)
	anew.wantNoText("Send a code")
	anew.press("Use the authenticator app", http.StatusOK)
	anew.press("Verify", http.StatusOK, "step-up.code", code(1))
	anew.wantPath("/console/publish")
	document, err := json.Marshal(fixture.NewServerDocument("com.example/weather", "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	anew.press("Publish", http.StatusOK, "document", string(document))
	anew.wantPath("/console/servers/com.example/weather/versions/1.0.0")
}

// composeEnvironment returns the environment of the service tollgate in the compose file, with that
// of its image. It replaces what is only there in a container, and nothing else.
func composeEnvironment(t *testing.T) []string {
	t.Helper()
	service := loadComposeService(t)
	if len(service.Command) > 0 || len(service.Entrypoint) > 0 {
		t.Fatalf("the command is %v %v, the test starts that of the image", service.Entrypoint, service.Command)
	}
	variables := imageEnvironment(t)
	for name, value := range service.Environment {
		variables[name] = *value
	}
	dir := t.TempDir()
	writeSecret := func(name, text string) string {
		fixture.WriteFile(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	rules := ""
	for _, v := range service.Volumes {
		if v.Target == "/srv/rules/config" {
			rules = v.Source
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(rules, filepath.Join(dir, "rules", "config")); err != nil {
		t.Fatal(err)
	}
	replacements := map[string]string{
		"DATABASE_URL_FILE": writeSecret("database_url", postgrestest.NewEmpty(t)), // PostgreSQL of the tests
		"SECRET_KEY_FILE":   writeSecret("secret_key", strings.Repeat("0123456789abcdef", 4)),
		"KVSTORE_URL":       os.Getenv("TEST_VALKEY_URL"),
		"DATA_DIR":          filepath.Join(dir, "data"),
		"RUNTIME_ROOT":      filepath.Join(dir, "rules"), // with the mounted folder
	}
	for name, value := range replacements {
		if variables[name] == "" {
			t.Errorf("%s is not in the compose file or the image any more", name)
		}
		variables[name] = value
	}
	delete(variables, "KVSTORE_AUTH_FILE") // Valkey of the tests has no password
	environ := []string{
		// The listeners get free ports of this machine, and the plugins are not next to the program.
		"HOST=127.0.0.1", "PORT=0", "RATELIMIT_HTTP_HOST=127.0.0.1", "RATELIMIT_HTTP_PORT=0", "GRPC_HOST=127.0.0.1",
		"GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"PLUGIN_DIR=" + filepath.Join(fixture.BinDir, "plugins"),
		// What every process has.
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0",
		// All tests use one Valkey.
		"CACHE_KEY_PREFIX=" + url.PathEscape(filepath.Base(filepath.Dir(dir))) + "_",
	}
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// loadComposeService returns the service tollgate of the compose file.
func loadComposeService(t *testing.T) types.ServiceConfig {
	t.Helper()
	path, err := filepath.Abs("../../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path}}, Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.Services["tollgate"]
}

// imageEnvironment returns the variables of the image. It fails the test if the image starts another
// command than serve.
func imageEnvironment(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\nENTRYPOINT [\"/opt/tollgate/tollgate\"]\nCMD [\"serve\"]\n") {
		t.Error("the image does not start tollgate serve")
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "ENV "); ok {
			for _, variable := range strings.Fields(list) {
				name, value, _ := strings.Cut(variable, "=")
				variables[name] = value
			}
		}
	}
	return variables
}
