package console

import (
	"encoding/json"
	"maps"
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

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/mailserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCompose starts the service with the environment and the command of the published compose file
// and of its image. No courier is configured there: a person is set up, adds an authenticator app,
// signs in anew, steps up with the app, and publishes.
func TestCompose(t *testing.T) {
	needServers(t)
	t.Parallel()
	page, err := os.ReadFile("../../../docs/compose.md")
	must.Succeed(t, err)
	word := regexp.MustCompile(`grep "([^"]+)"`).FindStringSubmatch(string(page))
	s := fixture.Launch(t, "serve", composeEnvironment(t, loadComposeService(t, "compose.yaml")))
	b := setUp(t, s)
	if word == nil || !strings.Contains(s.Process.Log(), word[1]) {
		t.Errorf("docs/compose.md finds the address of the setup by %q", word)
	}
	b.WantText("A courier for e-mail", "OTP_EMAIL_PLUGIN=otp-email", "Your authenticator app", "PUBLIC_URL", "pg_dump")
	b.Follow("Set up an authenticator app", http.StatusOK)
	b.Press("Set up an authenticator app", http.StatusOK)
	secret := strings.ReplaceAll(b.Field("secret"), " ", "")
	code := func(steps int) string {
		code, err := totp.GenerateCode(secret, time.Now().Add(time.Duration(steps)*30*time.Second))
		must.Succeed(t, err)
		return code
	}
	b.Press("Turn it on", http.StatusOK, "code", code(0))
	recovery := b.Codes()[0]
	b.Open("/console/operator", http.StatusOK).WantText("Done Your authenticator app")

	// A code of the app is good once, so the new sign-in takes a recovery code.
	anew := newBrowser(t, s)
	anew.Open("/console/sign-in?next=/console/publish", http.StatusOK)
	anew.Press("Sign in", http.StatusOK, "email", "ada@example.com", "password", fixture.Password)
	anew.Press("Continue", http.StatusOK, "code", recovery)
	anew.Open("/console/step-up?next=/console/publish", http.StatusOK).WantNoText("Send a code")
	anew.Press("Use the authenticator app", http.StatusOK)
	anew.Press("Verify", http.StatusOK, "step-up.code", code(1)).WantPath("/console/publish")
	document, err := json.Marshal(fixture.NewServerDocument("com.example/weather", "1.0.0"))
	must.Succeed(t, err)
	anew.Press("Publish", http.StatusOK, "document", string(document))
	anew.WantPath("/console/servers/com.example/weather/versions/1.0.0?done=published")
}

// TestComposeMail starts the service with the mail catcher of the published compose file too: a code
// arrives there.
func TestComposeMail(t *testing.T) {
	needServers(t)
	t.Parallel()
	service := loadComposeService(t, "compose.yaml", "mail.yaml")
	mail := mailserver.Start(t, mailserver.Options{Plain: true})
	if port := service.Environment["SMTP_PORT"]; port == nil || *port != "1025" {
		t.Fatalf("the settings of the mail catcher are %v", service.Environment)
	}
	service.Environment["SMTP_PORT"] = &mail.Port
	s := fixture.Launch(t, "serve", composeEnvironment(t, service))
	setUp(t, s)
	b := newBrowser(t, s)
	b.Open("/console/sign-in?next=/console/publish", http.StatusOK)
	b.Press("Sign in", http.StatusOK, "email", "ada@example.com", "password", fixture.Password)
	b.Open("/console/step-up?next=/console/publish", http.StatusOK)
	b.Press("Send a code to a…@example.com", http.StatusOK)
	code := ""
	await.Until(t, "the letter with the code", func() bool {
		for _, letter := range mail.Letters() {
			code = regexp.MustCompile(`\b[0-9]{6}\b`).FindString(letter.Subject)
			if code != "" {
				return true
			}
		}
		return false
	})
	b.Press("Verify", http.StatusOK, "step-up.code", code).WantPath("/console/publish")
}

// needServers skips a test without the servers of the compose file.
func needServers(t *testing.T) {
	t.Helper()
	if os.Getenv("TEST_DATABASE_URL") == "" || os.Getenv("TEST_VALKEY_URL") == "" {
		t.Skip("needs TEST_DATABASE_URL and TEST_VALKEY_URL")
	}
}

// setUp makes the first account at the address in the log, and returns the browser of its person.
func setUp(t *testing.T, s *fixture.Service) *browser {
	t.Helper()
	s.AwaitRules()
	s.AwaitLog(`"setup":`)
	link := regexp.MustCompile(`"setup":"http://localhost:[0-9]+(/console/setup\?code=[^"]+)"`).
		FindStringSubmatch(s.Process.Log())
	if link == nil {
		t.Fatal("the log has no address of the setup")
	}
	b := newBrowser(t, s)
	b.Open("/console/", http.StatusOK).WantText("setup?code=")
	b.Open(link[1], http.StatusOK)
	b.Press("Make the account", http.StatusOK, "email", "ada@example.com", "name", "Ada", "password", fixture.Password)
	b.WantPath("/console/operator")
	return b
}

// composeEnvironment returns the environment of the service tollgate in the compose file, with that
// of its image. It replaces what is only there in a container, and nothing else.
func composeEnvironment(t *testing.T, service types.ServiceConfig) []string {
	t.Helper()
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
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "rules"), 0o700))
	must.Succeed(t, os.Symlink(rules, filepath.Join(dir, "rules", "config")))
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
	return onThisMachine(variables, filepath.Base(filepath.Dir(dir)))
}

// onThisMachine returns an environment in which the listeners have free ports of this machine, and
// counters a prefix, since all tests use one Valkey.
func onThisMachine(variables map[string]string, prefix string) (environ []string) {
	maps.Copy(variables, map[string]string{
		"HOST": "127.0.0.1", "PORT": "0", "RATELIMIT_HTTP_HOST": "127.0.0.1", "RATELIMIT_HTTP_PORT": "0",
		"GRPC_HOST": "127.0.0.1", "GRPC_PORT": "0", "DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": "0",
		"PLUGIN_DIR": filepath.Join(fixture.BinDir, "plugins"), "CACHE_KEY_PREFIX": url.PathEscape(prefix) + "_",
		// What every process has.
		"PATH": os.Getenv("PATH"), "TMPDIR": os.TempDir(), "GORACE": "atexit_sleep_ms=0",
	})
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// loadComposeService returns the service tollgate of the published compose files.
func loadComposeService(t *testing.T, names ...string) types.ServiceConfig {
	t.Helper()
	folder, err := filepath.Abs("../../../deploy/compose")
	must.Succeed(t, err)
	var files []types.ConfigFile
	for _, name := range names {
		files = append(files, types.ConfigFile{Filename: filepath.Join(folder, name)})
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: folder, ConfigFiles: files, Environment: types.Mapping{},
	})
	must.Succeed(t, err)
	return p.Services["tollgate"]
}

// imageEnvironment returns the variables of the image. It fails the test if the image starts another
// command than serve.
func imageEnvironment(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/Containerfile")
	must.Succeed(t, err)
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
