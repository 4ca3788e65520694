package operator

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/pquerna/otp/totp"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

const provider = "tollgate provider add acme --issuer https://login.acme.example --client-id tollgate"

// exampleCommands are the preparing commands for examples that need more than a person, a device, a
// inContext makes a file with a context.
const inContext = `(umask 077; echo '{"signIn": {"url": "https://tollgate.example.com", "email": "ada@example.com"}}' > $TOLLGATE_CREDENTIALS)`

// session, a server and the files of writeFiles.
var exampleCommands = map[string]string{
	"tollgate user add":           "rm -r $DATA_DIR",
	"tollgate context use":        inContext,
	"tollgate context remove":     inContext,
	"tollgate setup-link":         "rm -r $DATA_DIR",
	"tollgate user invite-again":  invited,
	"tollgate user disable-mfa":   "tollgate user enrol-mfa --email ada@example.com",
	"tollgate grant remove":       "tollgate grant add --email ada@example.com --action publish --resource 'com.example/*'",
	"tollgate registry export":    "rm backup.json",
	"tollgate registry release":   held + "; " + held + " --version 1.0.0",
	"tollgate provider test":      provider,
	"tollgate provider remove":    provider,
	"tollgate methods remove":     "tollgate methods add --id 1400 --path /parking --service-id 271 --service parking",
	"tollgate allowlist":          "tollgate view add data",
	"tollgate collection remove":  collected,
	"tollgate collection show":    collected,
	"tollgate client remove":      registered,
	"tollgate client show":        registered,
	"tollgate mirror diff":        mirrored,
	"tollgate mirror remove":      mirrored,
	"tollgate mirror sync":        mirrored,
	"tollgate resource remove":    declared,
	"tollgate resource show":      declared,
	"tollgate tool-source remove": sourced,
	"tollgate tool-source show":   sourced,
	"tollgate view remove":        "tollgate view add data",
	"tollgate view token add":     partners,
	"tollgate view token list":    partners,
	"tollgate view token remove":  partners + "; tollgate view token add partners --name acme",
	"tollgate token create":       begun + "; " + steppedUp,
	"tollgate token list":         begun,
	"tollgate token remove":       begun,
	"tollgate login":              begun,
	"tollgate logout":             begun,
	"tollgate publish":            begun + "; " + steppedUp,
	"tollgate status":             begun + "; " + steppedUp,
	"tollgate server list":        begun,
	"tollgate server search":      begun,
	"tollgate server show":        begun,
	"tollgate server deprecate":   begun + "; " + steppedUp,
	"tollgate server delete":      begun + "; " + steppedUp,
	"tollgate server owner":       begun + "; " + steppedUp,
	"tollgate server restore":     begun + "; " + steppedUp + "; tollgate server delete com.example/weather@1.0.0",
	"tollgate whoami":             begun,
	"tollgate access rule show":   ruled,
	"tollgate access rule remove": ruled,
	"tollgate access explain":     operating + "; " + begun + "; " + steppedUp,
}

// The commands that prepare a publisher: signed in, with an open step-up; the code of the step-up;
// the command that puts the server in quarantine; and the one that adds a view with tokens. A person is
// invited at the service only.
const (
	begun = `printf '%s' "$PASSWORD" | tollgate login --url "$SERVICE" --email ada@example.com --password-stdin --step-up email || test $? = 3`
	code  = `$(sed -n 's/.*"code":"\([0-9]*\)".*/\1/p' "$OTP_LOG_FILE" | tail -n 1)`

	steppedUp = "tollgate login --code " + code

	operating = "tollgate grant add --email ada@example.com --action operate"

	ruled = "tollgate access rule set readers --effect deny --subject anyone --server '*'"

	invited = operating + "; " + begun + "; " + steppedUp +
		`; tollgate user add --server "$SERVICE" --email grace@example.com --name Grace`

	held = "tollgate registry quarantine com.example/weather --reason 'it sends mail'"

	partners = "tollgate view add partners --access token"

	mirrored = "tollgate mirror add public https://registry.example"

	registered = "tollgate client set ide --name IDE --redirect-uri http://127.0.0.1/callback"
	sourced    = "tollgate tool-source set weather --server com.example/weather --remote https://weather.example.com/mcp --header Authorization"
	collected  = "tollgate collection set start --sentence 'What every team needs.' --server com.example/weather"
	declared   = "tollgate resource set weather --url https://weather.example.com/mcp --server com.example/weather"
)

// exampleServices are the commands that call a service. Each line of their examples gets a running
// service.
var exampleServices = []string{
	"tollgate health", "tollgate login", "tollgate logout", "tollgate publish", "tollgate status", "tollgate whoami",
	"tollgate server list", "tollgate server search", "tollgate server show", "tollgate server deprecate",
	"tollgate server delete", "tollgate server owner", "tollgate server restore", "tollgate user invite-again", "tollgate access explain",
	"tollgate token create", "tollgate token list", "tollgate token remove",
}

// TestCommandExamples runs every line of every command's examples in docs/commands.md, each on its
// own data. The test starts and stops services, and replaces the names of foreign servers with
// servers of the test.
func TestCommandExamples(t *testing.T) {
	content, err := os.ReadFile("../../../docs/commands.md")
	must.Succeed(t, err)
	template := newExampleData(t)
	lines := 0
	for name, examples := range commandExamples(string(content)) {
		for _, line := range examples {
			lines++
			t.Run(strings.ReplaceAll(line, "/", "∕"), func(t *testing.T) { template.runExample(t, name, line) })
		}
	}
	if lines < 50 {
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

// exampleData is the data that the examples use: records of people who have signed in, and files.
type exampleData struct {
	*fixture.Environment
	replacements []string // texts of the examples, each with its replacement in this data
}

func newExampleData(t *testing.T) *exampleData {
	t.Helper()
	e := &exampleData{Environment: fixture.NewEnvironment(t, "embedded")}
	s := e.Start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/*")
	ada.Login(t, s)
	ada.StepUp(t, e.Environment, s)
	webhook, awaitEvent := e.addWebhook(t)
	tokens := e.addTokens(t, s, ada)
	apiclient.Call(t, "POST", s.API+"/v0.1/publish", fixture.NewServerDocument("com.example/weather", "1.0.0"),
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	var devices, sessions []struct{ ID string }
	e.ReadCommand(t, &devices, "device", "list", "--email", ada.Email)
	e.ReadCommand(t, &sessions, "session", "list", "--email", ada.Email)
	eventID := awaitEvent()
	s.Stop()
	reviewing := e.Start(t, "REGISTRY_REVIEW=on")
	apiclient.Call(t, "POST", reviewing.API+"/v0.1/publish", fixture.NewServerDocument("com.example/weather", "1.1.0"),
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	reviewing.Stop()
	var reviews, rules []struct{ ID string }
	e.ReadCommand(t, &reviews, "review", "list")
	e.ReadCommand(t, &rules, "review", "rule", "add", "--pattern", "com.example/*", "--when", "any")
	var added []struct{ ID string }
	e.ReadCommand(t, &added, "publisher", "add", "--method", "http", "--domain", "example.com", "--pattern",
		"com.example/*")
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"servers":[],"metadata":{"count":0}}`)) // the client reports a failure
	}))
	t.Cleanup(upstream.Close)
	toolServer := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(toolServer, &mcp.Tool{Name: "forecast"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	remote := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return toolServer }, nil))
	t.Cleanup(remote.Close)
	e.replacements = []string{
		"7d9f2a44-3c1e-4b5a-9a86-0f5d1c2b3a49", devices[0].ID,
		"2c6b1f0e-58d4-4f7a-8a3d-91e0c7b4d652", sessions[0].ID,
		"3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c", added[0].ID,
		"9e0c4ad4-3f52-4d0e-8a55-0c3ad2f1b6a7", reviews[0].ID,
		"5b1e7c90-2f4a-4d8e-b3c6-7a9d0e1f2c34", rules[0].ID,
		"8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50", webhook,
		"c1d7e9b2-5a3f-4860-8e14-7b9a2c0d6f38", eventID,
		"4d2c9a70-6e1b-4f38-9b5d-2a7c8e0f1d63", tokens["tollgate service-account token remove"],
		"6f0a3b58-1c7d-4e92-8a46-9d5e2c1b7f04", tokens["tollgate token remove"],
		"https://registry.example", upstream.URL, "https://weather.example.org", remote.URL,
		"/srv/runtime_data/current", filepath.Dir(e.RulesDir),
	}
	e.writeFiles(t)
	return e
}

// addTokens adds the service account ci, and a token of it and of a person. It returns their ids by
// the command that removes them.
func (e *exampleData) addTokens(t *testing.T, s *fixture.Service, owner *fixture.Person) map[string]string {
	t.Helper()
	e.RunCommand(t, "", "service-account", "set", "ci")
	e.RunCommand(t, "", "service-account", "token", "create", "ci", "--name", "t", "--scope", "decide")
	var list []struct{ ID string }
	e.ReadCommand(t, &list, "service-account", "token", "list", "ci")
	var own struct{ ID string }
	owner.PostJSON(t, s, "/admin/v1/me/tokens", map[string]any{"name": "t", "scopes": []string{"decide"}}).
		WantStatus(t, http.StatusCreated).Decode(t, &own)
	return map[string]string{"tollgate service-account token remove": list[0].ID, "tollgate token remove": own.ID}
}

// addWebhook adds a webhook whose receiver accepts everything, and returns its ID and a function
// that waits for the first event and returns its ID.
func (e *exampleData) addWebhook(t *testing.T) (id string, receive func() string) {
	t.Helper()
	first := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		select {
		case first <- body.ID:
		default: // it is not the first
		}
	}))
	t.Cleanup(receiver.Close)
	var added []struct{ ID string }
	e.ReadCommand(t, &added, "webhook", "add", receiver.URL, "--events", "published")
	return added[0].ID, func() string {
		return await.Receive(t, "an event at the webhook", first)
	}
}

// writeFiles writes the files that the examples read.
func (e *exampleData) writeFiles(t *testing.T) {
	t.Helper()
	files := filepath.Join(e.Dir, "files")
	for _, folder := range []string{"servers", "state"} {
		must.Succeed(t, os.MkdirAll(filepath.Join(files, folder), 0o700))
	}
	doc, err := json.Marshal(fixture.NewServerDocument("com.example/news", "1.0.0"))
	must.Succeed(t, err)
	events, err := os.ReadFile("../../../adapters/loginhistory/testdata/events.jsonl")
	must.Succeed(t, err)
	traffic, err := os.ReadFile("../../../cmd/tollgate/limits/testdata/simulate/traffic.jsonl")
	must.Succeed(t, err)
	for name, content := range map[string]string{
		"server.json":       string(doc),
		"servers/news.json": string(doc),
		"backup.json":       newSampleExport(t, 3),
		"methods.json":      e.RunCommand(t, "", "methods", "list", "--output", "json"),
		"openapi.yaml":      "openapi: 3.1.0\npaths:\n  /pets: {}\n",
		"events.jsonl":      string(events),
		"stricter.yaml":     "deviceFamiliarity:\n  unknown: 40\n",
		"traffic.jsonl":     string(traffic),
		"decisions.log":     `{"@message":"a call of a server was decided","effect":"deny","reason":"default","server":"com.example/weather"}` + "\n",
		"state.yaml":        "apiVersion: tollgate.dev/v1\nkind: State\nviews: [{name: data}]\n",
		"state/data.json":   `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data"}]}`,
	} {
		fixture.WriteFile(t, filepath.Join(files, name), content)
	}
	for _, rules := range []string{"rules", "changed"} { // equal, so that nothing is newly refused
		if err := os.CopyFS(filepath.Join(files, rules),
			os.DirFS("../../../cmd/tollgate/limits/testdata/simulate/old")); err != nil {
			t.Fatal(err)
		}
	}
	docs, err := filepath.Abs("../../../docs")
	must.Succeed(t, err)
	must.Succeed(t, os.Symlink(docs, filepath.Join(files, "docs")))
}

// example is one line that runs in its own folder.
type example struct {
	name    string // the name of the command
	line    string
	dir     string
	environ []string
}

// runExample runs one line in its own folder.
func (e *exampleData) runExample(t *testing.T, name, line string) {
	t.Parallel()
	x := &example{name: name, line: strings.NewReplacer(e.replacements...).Replace(line), dir: t.TempDir()}
	for _, part := range []string{"data", "files"} {
		must.Succeed(t, os.CopyFS(filepath.Join(x.dir, part), os.DirFS(filepath.Join(e.Dir, part))))
	}
	x.environ = append(append([]string{}, e.Environ...),
		"DATA_DIR="+filepath.Join(x.dir, "data"), "PATH="+fixture.BinDir+":"+os.Getenv("PATH"),
		"PASSWORD="+fixture.Password, "LOG_LEVEL=info", "GOGC=400", "AUTHORIZATION=Bearer secret",
		"OTP_LOG_FILE="+filepath.Join(x.dir, "otp.jsonl"),
		"TOLLGATE_CREDENTIALS="+filepath.Join(x.dir, "credentials.json"))
	if strings.HasPrefix(name, "tollgate client ") || strings.HasPrefix(name, "tollgate resource ") {
		x.environ = append(x.environ, "OAUTH=on", "PUBLIC_URL="+publicURL)
	}
	x.line = replaceServers(t, x.line)
	if strings.Contains(x.line, "--oidc") {
		x.allowIdentity(t)
	}
	if slices.Contains(exampleServices, name) {
		x.startService(t)
	}
	if before := exampleCommands[name]; before != "" {
		x.runShell(t, strings.NewReplacer(e.replacements...).Replace(before))
	}
	x.runLine(t)
}

// publicURL is the URL of the service in the examples of CI jobs.
const publicURL = "https://tools.example.com"

// allowIdentity gives the example an ID token and its service a policy that admits it.
func (x *example) allowIdentity(t *testing.T) {
	t.Helper()
	issuer := oidcissuer.Start(t)
	x.environ = append(x.environ, "OIDC_ISSUERS="+issuer.URL, "PUBLIC_URL="+publicURL,
		"TOLLGATE_ID_TOKEN="+issuer.Sign(t, issuer.NewClaims(publicURL, time.Now())))
	x.runShell(t,
		"tollgate publisher add --method oidc --issuer "+issuer.URL+
			" --subject 'repo:example/*' --pattern 'com.example/*'")
}

// startService starts a service with the data of the example, which replaces the services in the
// line.
func (x *example) startService(t *testing.T) {
	t.Helper()
	s := fixture.Launch(t, "serve", x.environ)
	s.AwaitRules()
	_, port, err := net.SplitHostPort(s.Process.API)
	must.Succeed(t, err)
	x.environ = append(x.environ, "SERVICE="+s.API, "PORT="+port)
	x.line = strings.NewReplacer("https://tollgate.example.com", s.API, publicURL, s.API, "http://localhost:8080",
		s.RateLimitAPI).Replace(x.line)
}

// runShell runs commands in the folder of the example.
func (x *example) runShell(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = filepath.Join(x.dir, "files"), x.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// runAtTerminal runs the line at a terminal and types the words.
func (x *example) runAtTerminal(t *testing.T, words ...string) string {
	t.Helper()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("a terminal is made by script(1)")
	}
	return x.runShell(t,
		`printf '`+strings.Join(words, `\n`)+`\n' | script --quiet --return --command '`+x.line+`' /dev/null`)
}

// runLine runs the line.
func (x *example) runLine(t *testing.T) {
	switch {
	case x.name == "tollgate serve" || x.name == "tollgate ratelimit" || x.line == "tollgate serve":
		service, err := instance.Start("bash", x.environ, "-c", x.line)
		must.Succeed(t, err)
		if err := service.Stop(); err != nil {
			t.Errorf("%v\n%s", err, service.Log())
		}
	case x.name == "tollgate login" && strings.Contains(x.line, "123456"):
		x.runShell(t, strings.Replace(x.line, "123456", code, 1))
	case strings.Contains(x.line, "123456"):
		x.runShell(t, strings.Replace(x.line, "123456", enrolPerson(t, x), 1))
	case x.name == "tollgate login" && strings.Contains(x.line, "--step-up"):
		x.runShell(t, "code=0; { "+x.line+"; } || code=$?; test $code = 3") // the code is brought by the next line
	case x.name == "tollgate login" && !strings.Contains(x.line, "--email"):
		login := (&fixture.Publisher{Environ: x.environ}).OpenLogin(t, strings.Fields(x.line)[2:]...)
		login.Approve(t, &fixture.Person{Email: "ada@example.com"})
		login.End(t, 0)
	case x.name == "tollgate login":
		if shown := x.runAtTerminal(t, fixture.Password, "none"); !strings.Contains(shown, "ada@example.com") {
			t.Errorf("after the password was typed, there is\n%s", shown)
		}
	case x.name == "tollgate user add" && !strings.Contains(x.line, "--password-stdin"):
		x.runAtTerminal(t, fixture.Password, fixture.Password)
		if list := x.runShell(t, "tollgate user list"); !strings.Contains(list, "ada@example.com") {
			t.Errorf("after the passwords were typed, the list is\n%s", list)
		}
	default:
		x.runShell(t, x.line)
	}
}

// enrolPerson enrols an authenticator for the person and returns its code.
func enrolPerson(t *testing.T, x *example) string {
	t.Helper()
	var told struct{ Secret string }
	out := x.runShell(t, "tollgate user enrol-mfa --email ada@example.com --output json 2>&-")
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, err := totp.GenerateCode(told.Secret, time.Now())
	must.Succeed(t, err)
	return code
}

// replaceServers replaces the servers in a line by those of the tests.
func replaceServers(t *testing.T, line string) string {
	t.Helper()
	if strings.Contains(line, "postgres://") || strings.Contains(line, "localhost:6379") {
		if os.Getenv("TEST_DATABASE_URL") == "" || os.Getenv("TEST_VALKEY_URL") == "" {
			t.Skip("needs TEST_DATABASE_URL and TEST_VALKEY_URL")
		}
		line = strings.NewReplacer(
			"postgres://tollgate@localhost/tollgate", "'"+postgrestest.NewEmpty(t)+"'", "localhost:6379",
			os.Getenv("TEST_VALKEY_URL"),
		).Replace(line)
	}
	return line
}
