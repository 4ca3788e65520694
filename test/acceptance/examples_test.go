package acceptance

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// exampleCommands are what comes before the lines of a command that need more
// than a person, a device, a session, a server and the files of writeFiles.
var exampleCommands = map[string]string{
	"tollgate user add":         "rm -r $DATA_DIR",
	"tollgate user disable-mfa": "tollgate user enrol-mfa --email ada@example.com",
	"tollgate grant remove":     "tollgate grant add --email ada@example.com --action publish --resource 'com.example/*'",
	"tollgate methods remove":   "tollgate methods add --id 1400 --path /parking --service-id 271 --service parking",
}

// publishersCommands need a person at a terminal and a service elsewhere: their
// lines are those of docs/publishing.md, which TestPublishingGuide types.
var publishersCommands = []string{"tollgate login", "tollgate logout", "tollgate publish", "tollgate status", "tollgate whoami"}

// TestCommandExamples runs every line of every command's example as
// docs/commands.md has it, each on data of its own. Services are started and
// stopped; what names a server of somebody else's speaks to one of the test.
func TestCommandExamples(t *testing.T) {
	content, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	template := newExampleData(t)
	lines := 0
	for name, examples := range commandExamples(string(content)) {
		if slices.Contains(publishersCommands, name) {
			continue
		}
		for _, line := range examples {
			lines++
			t.Run(strings.ReplaceAll(line, "/", "∕"), func(t *testing.T) { template.run(t, name, line) })
		}
	}
	if lines < 40 {
		t.Errorf("there are %d lines of examples, want those of all commands", lines)
	}
}

// commandExamples returns the lines of the examples by the command.
func commandExamples(document string) map[string][]string {
	examples := map[string][]string{}
	for _, section := range strings.Split(document, "\n##")[1:] {
		title, rest, _ := strings.Cut(section, "\n")
		if _, block, found := strings.Cut(rest, "```sh\n"); found {
			block, _, _ = strings.Cut(block, "```")
			examples[strings.Trim(title, "# ")] = strings.Split(strings.TrimSpace(block), "\n")
		}
	}
	return examples
}

// exampleData is what the examples assume: records of people who have signed
// in, and files.
type exampleData struct {
	*environment
	replacements []string // what stands in the examples, and what in this data
}

func newExampleData(t *testing.T) *exampleData {
	t.Helper()
	e := &exampleData{environment: newEnvironment(t, "embedded")}
	s := e.start(t)
	ada := e.newPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/*")
	ada.login(t, s)
	ada.stepUp(t, e.environment, s)
	call(t, "POST", s.api+"/v0.1/publish", document("com.example/weather", "1.0.0"), ada.bearer()...).want(t, http.StatusOK)
	var devices, sessions []struct{ ID string }
	e.tells(t, &devices, "device", "list", "--email", ada.email)
	e.tells(t, &sessions, "session", "list", "--email", ada.email)
	s.stop()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"servers":[],"metadata":{"count":0}}`)) // the client tells
	}))
	t.Cleanup(upstream.Close)
	e.replacements = []string{
		"7d9f2a44-3c1e-4b5a-9a86-0f5d1c2b3a49", devices[0].ID,
		"2c6b1f0e-58d4-4f7a-8a3d-91e0c7b4d652", sessions[0].ID,
		"https://registry.example", upstream.URL,
		"/srv/runtime_data/current", filepath.Dir(e.rules),
	}
	e.writeFiles(t)
	return e
}

// writeFiles writes the files that the examples read.
func (e *exampleData) writeFiles(t *testing.T) {
	t.Helper()
	files := filepath.Join(e.dir, "files")
	if err := os.MkdirAll(filepath.Join(files, "servers"), 0o700); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(document("com.example/news", "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	events, err := os.ReadFile("../../adapters/loginlog/testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"server.json":       string(doc),
		"servers/news.json": string(doc),
		"backup.json":       sample(t, 3),
		"methods.json":      e.tollgate(t, "", "methods", "list", "--output", "json"),
		"openapi.yaml":      "openapi: 3.1.0\npaths:\n  /pets: {}\n",
		"events.jsonl":      string(events),
	} {
		write(t, filepath.Join(files, name), content)
	}
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(docs, filepath.Join(files, "docs")); err != nil {
		t.Fatal(err)
	}
}

// run runs one line in a folder of its own.
func (e *exampleData) run(t *testing.T, name, line string) {
	t.Parallel()
	own := t.TempDir()
	for _, part := range []string{"data", "files"} {
		if err := os.CopyFS(filepath.Join(own, part), os.DirFS(filepath.Join(e.dir, part))); err != nil {
			t.Fatal(err)
		}
	}
	environ := append(append([]string{}, e.environ...),
		"DATA_DIR="+filepath.Join(own, "data"), "PATH="+built+":"+os.Getenv("PATH"), "PASSWORD="+password, "LOG_LEVEL=info")
	line = strings.NewReplacer(e.replacements...).Replace(line)
	line = servers(t, line)
	shell := func(commands string) string {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
		cmd.Dir, cmd.Env = filepath.Join(own, "files"), environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", commands, err, out)
		}
		return string(out)
	}
	if before := exampleCommands[name]; before != "" {
		shell(before)
	}
	switch {
	case name == "tollgate serve" || name == "tollgate ratelimit" || line == "tollgate serve":
		service, err := instance.Start("bash", environ, "-c", line)
		if err != nil {
			t.Fatal(err)
		}
		if err := service.Stop(); err != nil {
			t.Errorf("%v\n%s", err, service.Log())
		}
	case strings.Contains(line, "123456"):
		shell(strings.Replace(line, "123456", enrolled(t, shell), 1))
	case name == "tollgate user add" && !strings.Contains(line, "--password-stdin"):
		if _, err := exec.LookPath("script"); err != nil {
			t.Skip("a terminal is made by script(1)")
		}
		shell(`printf '%s\n%s\n' "$PASSWORD" "$PASSWORD" | script --quiet --return --command '` + line + `' /dev/null`)
		if list := shell("tollgate user list"); !strings.Contains(list, "ada@example.com") {
			t.Errorf("after the passwords were typed, the list is\n%s", list)
		}
	default:
		shell(line)
	}
}

// enrolled gives the person an authenticator and returns its code.
func enrolled(t *testing.T, shell func(string) string) string {
	t.Helper()
	var told struct{ Secret string }
	out := shell("tollgate user enrol-mfa --email ada@example.com --output json 2>&-")
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, err := totp.GenerateCode(told.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// servers puts those of the tests in the place of the ones that a line names.
func servers(t *testing.T, line string) string {
	t.Helper()
	if strings.Contains(line, "postgres://") || strings.Contains(line, "localhost:6379") {
		if os.Getenv("TEST_DATABASE_URL") == "" || os.Getenv("TEST_VALKEY_URL") == "" {
			t.Skip("needs TEST_DATABASE_URL and TEST_VALKEY_URL")
		}
		line = strings.NewReplacer(
			"postgres://tollgate@localhost/tollgate", "'"+newDatabase(t)+"'", "localhost:6379", os.Getenv("TEST_VALKEY_URL"),
		).Replace(line)
	}
	return line
}
