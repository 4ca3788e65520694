package person_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// isPackage reports whether this program was started by a name that starts packages.
func isPackage() bool { return filepath.Base(os.Args[0]) == "npx" }

// servePackage serves a tool whose description is the command, and the names of all variables.
func servePackage() {
	var names []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	tool := strings.Join(append(os.Args[1:], names...), " ")
	_ = newToolServer(tool, os.Getenv("MOOD")).Run(context.Background(), &mcp.StdioTransport{}) // it ends with its input
}

func newToolServer(description, title string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "forecast", Title: title, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	return s
}

// TestToolsRecord records the list of a package by what ada has, compares it, and changes it.
func TestToolsRecord(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	service := e.Start(t, fixture.RegistrySettings()...)
	ada := e.NewWriter(t, service, "ada@example.com", "publish com.example/*")
	document := fixture.NewServerDocument("com.example/weather", "1.0.0")
	document["packages"] = []any{
		map[string]any{"registryType": "npm", "identifier": "weather", "version": "2.0.0", "transport": map[string]any{"type": "stdio"}},
		map[string]any{
			"registryType": "npm", "identifier": "weather", "version": "3.0.0", "transport": map[string]any{"type": "stdio"},
			"packageArguments": []any{map[string]any{"type": "positional", "valueHint": "city", "isRequired": true}},
		},
	}
	apiclient.Call(t, "POST", service.API+"/v0.1/publish", document, ada.Bearer()...).WantStatus(t, http.StatusOK)
	bin := t.TempDir()
	program, err := os.Executable()
	must.Succeed(t, err)
	must.Succeed(t, os.Symlink(program, filepath.Join(bin, "npx")))
	t.Setenv("PATH", bin)
	environ := []string{
		"PATH=" + bin, "HOME=" + bin, "TOLLGATE_TOKEN=" + ada.AccessToken, "TOLLGATE_SERVER=" + service.API, "API_KEY=sesame", "MOOD=calm",
		"UNNAMED=x",
	}
	run := func(code int, says string, args ...string) {
		t.Helper()
		line := append([]string{"tools", "record", "com.example/weather@1.0.0"}, args...)
		stdout, stderr, got := (&fixture.Environment{Environ: environ}).TryCommand(t, "", line...)
		if got != code || !strings.Contains(stdout+stderr, says) || strings.Contains(stdout+stderr, "sesame") {
			t.Errorf("%v: code %d, %s%s, want %d and %q", line, got, stdout, stderr, code, says)
		}
	}
	const first = "--package=0"
	run(cli.ExitOK, `"description": "-y weather@2.0.0 API_KEY HOME PATH"`, first, "--env", "API_KEY", "--dry-run")
	run(cli.ExitLimit, "no list of it is approved", first, "--diff")
	run(cli.ExitOK, "package 0  approved  recorded  1", first, "--env", "API_KEY")
	run(cli.ExitOK, "DIFFERENCE", first, "--env", "API_KEY", "--diff")
	run(cli.ExitLimit, `the tool "forecast" has another description`, first, "--env", "API_KEY", "--env", "MOOD", "--diff")
	run(cli.ExitLimit, `"sentence": "the tool \"forecast\" has another title`, first, "--env", "API_KEY", "--env", "MOOD", "--diff", "-o", "json")
	run(cli.ExitOK, "package 0  changed   recorded  1", first, "--env", "MOOD")
	run(cli.ExitFailed, "give it with --env COM_EXAMPLE_WEATHER_CITY", "--package=1")
	environ = append(environ, "COM_EXAMPLE_WEATHER_CITY=Paris")
	run(cli.ExitOK, "-y weather@3.0.0 Paris COM_EXAMPLE_WEATHER_CITY HOME PATH", "--package=1", "--env", "COM_EXAMPLE_WEATHER_CITY", "--dry-run")
	run(cli.ExitFailed, "no package 2", "--package=2")

	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Api-Key") != "sesame" || r.Header.Get("Authorization") != "" {
			t.Errorf("the remote gets %v", r.Header)
		}
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newToolServer("of a remote", "") },
			&mcp.StreamableHTTPOptions{Stateless: true}).ServeHTTP(w, r)
	}))
	t.Cleanup(remote.Close)
	run(cli.ExitOK, `"description": "of a remote"`, "--remote", remote.URL, "--header", "Api-Key", "--dry-run")
	run(cli.ExitFailed, "com.example/weather@1.0.0", "--remote", remote.URL, "--header", "Api-Key")
	repeats := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var q struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&q) // the ID of what is no request is empty
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no key %s"}}`, q.ID, r.Header.Get("Api-Key"))
	}))
	t.Cleanup(repeats.Close)
	run(cli.ExitFailed, "no key <Api-Key>", "--remote", repeats.URL, "--header", "Api-Key")
	run(cli.ExitFailed, "http://127.0.0.1:1", "--remote", "http://127.0.0.1:1", "--header", "Api-Key")
}
