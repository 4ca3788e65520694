package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/instance"
)

const (
	seeded        = 300 // servers of a measured registry
	firstVersions = 20  // versions of the first one
)

const rules = `domain: bench
descriptors:
  - key: key
    rate_limit: {unit: hour, requests_per_unit: 4000000000}
`

// environment is one way to run the service.
type environment struct {
	name, counters, records string
	environ                 []string
	database                string // a URL, or the folder of the database file
	otpLog                  string
}

// newEnvironments returns the environments whose servers are available.
func newEnvironments(dir string, p plan) []environment {
	list := []environment{newEnvironment(dir, p, "embedded", "in the process", "SQLite")}
	valkey, database := os.Getenv("TEST_VALKEY_URL"), os.Getenv("TEST_DATABASE_URL")
	if valkey == "" || database == "" {
		return list
	}
	e := newEnvironment(dir, p, "production", "on Valkey", "PostgreSQL")
	own, err := postgrestest.Create(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "load: production is left out:", err)
		return list
	}
	e.database = own
	e.environ = append(e.environ, "DATABASE_URL="+own, "KVSTORE_URL="+valkey,
		fmt.Sprintf("CACHE_KEY_PREFIX=load_%d_", time.Now().UnixNano()), "OTP_EMAIL_PLUGIN=otp-log")
	return append(list, e)
}

// inEachEnvironment builds the service into a temporary folder and measures it in each environment.
func inEachEnvironment(measure func(dir string, e environment) error) error {
	dir, err := os.MkdirTemp("", "tollgate-load-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder; the system removes what is left
	if err := instance.Build(".", dir, false, "cmd/tollgate", "plugins/otp-log"); err != nil {
		return err
	}
	for _, e := range newEnvironments(dir, plan{}) {
		if err := measure(dir, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func newEnvironment(dir string, p plan, name, counters, records string) environment {
	own := filepath.Join(dir, name)
	e := environment{name: name, counters: counters, records: records, otpLog: filepath.Join(own, "otp.jsonl")}
	e.database = filepath.Join(own, "data")
	e.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + own,
		"DATA_DIR=" + e.database,
		"PLUGIN_DIR=" + filepath.Join(dir, "plugins"), "OTP_LOG_FILE=" + e.otpLog,
		"RUNTIME_ROOT=" + own, "RUNTIME_WATCH_ROOT=false",
		"HOST=127.0.0.1", "PORT=0", "RATELIMIT_HTTP_HOST=127.0.0.1", "RATELIMIT_HTTP_PORT=0",
		"GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"LOG_FORMAT=json", "SHUTDOWN_DRAIN=0s", "PACKAGE_CHECKS=off",
		"AUTH_RATE_LIMIT=4000000000", "API_RATE_LIMIT=4000000000",
		"REGISTRY_RATE_LIMIT=" + strconv.FormatUint(p.limit, 10),
	}
	return e
}

// startService starts the service of dir in this environment, with its rate limit rules.
func (e environment) startService(dir string, args ...string) (*instance.Instance, error) {
	if err := writeRules(filepath.Dir(e.otpLog), []byte(rules)); err != nil {
		return nil, err
	}
	return instance.Start(filepath.Join(dir, "tollgate"), e.environ, args...)
}

// writeRules writes rate limit rules below the RUNTIME_ROOT of a service.
func writeRules(root string, rules []byte) error {
	config := filepath.Join(root, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	if err := os.WriteFile(filepath.Join(config, "rules.yaml"), rules, 0o600); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}

// seedService publishes servers and returns an access token.
func seedService(dir string, e environment, i *instance.Instance) (string, error) {
	token, err := signIn(dir, e, i)
	if err != nil {
		return "", err
	}
	for n := range seeded + firstVersions - 1 {
		server, patch := max(0, n-firstVersions+1), min(n, firstVersions-1)
		if server > 0 {
			patch = 0
		}
		if err := postJSON("http://"+i.API+"/v0.1/publish", token, newDocument(server, patch), nil); err != nil {
			return "", err
		}
	}
	return token, nil
}

// signIn creates an account that may publish everything, signs it in with full trust and returns an
// access token.
func signIn(dir string, e environment, i *instance.Instance) (string, error) {
	const email, password = "load@example.com", "Correct-Horse-7-Battery"
	if err := runCommand(dir, e, password, "user", "add", "--email", email, "--name", "Load",
		"--password-stdin"); err != nil {
		return "", err
	}
	if err := runCommand(dir, e, "", "grant", "add", "--email", email, "--action", "publish", "--resource",
		"*"); err != nil {
		return "", err
	}
	api := "http://" + i.API
	var login struct{ AccessToken string }
	device := map[string]string{"userAgent": "load", "language": "en"}
	if err := postJSON(api+"/auth/login", "", map[string]any{
		"email": email, "password": password, "deviceInfo": device,
	}, &login); err != nil {
		return "", err
	}
	var challenge struct{ ChallengeID string }
	if err := postJSON(api+"/auth/step-up/initiate", login.AccessToken, map[string]string{"method": "EMAIL_OTP"},
		&challenge); err != nil {
		return "", err
	}
	code, err := lastCode(e.otpLog)
	if err != nil {
		return "", err
	}
	if err := postJSON(api+"/auth/step-up/verify", "", map[string]string{
		"challengeId": challenge.ChallengeID, "otp": code,
	}, nil); err != nil {
		return "", err
	}
	return login.AccessToken, nil
}

// newDocument returns a server document of about the usual size.
func newDocument(n, patch int) map[string]any {
	name := fmt.Sprintf("com.example/s%d", n)
	return map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json",
		"name":    name, "version": fmt.Sprintf("1.0.%d", patch), "title": "Server " + name,
		"description": "A server that stands for the many that a registry holds",
		"repository": map[string]string{
			"url": "https://github.com/example/" + strings.ReplaceAll(name, "/", "-"), "source": "github",
		},
		"remotes": []any{map[string]any{
			"type": "streamable-http", "url": fmt.Sprintf("https://s%d.example.com/mcp", n),
			"headers": []any{map[string]any{
				"name": "Authorization", "description": "API key from the account page", "isRequired": true,
				"isSecret": true,
			}},
		}},
	}
}

// commandOutput runs a command of the service and returns what it prints.
func commandOutput(dir string, e environment, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(dir, "tollgate"), args...)
	cmd.Env = e.environ
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("tollgate %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func runCommand(dir string, e environment, stdin string, args ...string) error {
	cmd := exec.Command(filepath.Join(dir, "tollgate"), args...)
	cmd.Env = e.environ
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("tollgate %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func postJSON(address, token string, body, into any) error {
	return postJSONWith(http.DefaultClient, address, token, body, into)
}

func postJSONWith(client *http.Client, address, token string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing else is read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, resp.Status)
	}
	if into == nil {
		_, err := io.Copy(io.Discard, resp.Body) // so that the connection can be reused
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// lastCode returns the last code that otp-log wrote.
func lastCode(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read codes: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	var entry struct{ Code string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &entry); err != nil {
		return "", fmt.Errorf("read codes: %w", err)
	}
	return entry.Code, nil
}
