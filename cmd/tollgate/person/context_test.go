package person_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/program"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestContexts checks which sign-in commands use, and that a file of an older version is read.
func TestContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	ended := map[string]int{}
	newService := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+name {
				t.Errorf("%s gets %s of %s", name, r.Header.Get("Authorization"), r.URL)
			}
			if r.URL.Path == "/auth/logout" {
				ended[name]++
			}
			_, _ = w.Write([]byte(`{"id": "i", "userId": "` + name + `", "trustLevel": "FULL_TRUST"}`))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	first, second := newService("first"), newService("second")
	tokens := func(name string) string {
		return `"tokens": {"access": "` + name + `", "refresh": "r", "expiresAt": "2090-01-01T00:00:00Z"}`
	}
	must.Succeed(t, os.WriteFile(path, []byte(`{"device": {"userAgent": "ua"}, "signIn": {"url": "`+first+`", "email": "a@example.com", `+tokens("first")+`}}`), 0o600))
	run := func(code int, environ []string, line ...string) string {
		t.Helper()
		var out strings.Builder
		got := program.Run(t.Context(), cli.Process{
			Args: line, Environ: append(environ, person.CredentialsVariable+"="+path), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		})
		if got != code {
			t.Fatalf("%v: code %d, %s", line, got, &out)
		}
		return out.String()
	}
	host := strings.TrimPrefix(first, "http://")
	if list := run(0, nil, "context", "list"); !strings.Contains(list, host) {
		t.Errorf("the contexts are\n%s", list)
	}
	var contents credentialfile.Contents
	text, err := os.ReadFile(path)
	must.Succeed(t, err)
	must.Succeed(t, json.Unmarshal(text, &contents))
	work := &credentialfile.SignIn{Name: "work", URL: second, Email: "b@example.com"}
	must.Succeed(t, json.Unmarshal([]byte("{"+tokens("second")+"}"), work))
	must.Succeed(t, credentialfile.New(path).Update(t.Context(), func(c *credentialfile.Contents) { *c = contents; c.Use(work) }))

	wantUser := func(want string, environ []string, line ...string) {
		t.Helper()
		if out := run(0, environ, append(line, "-o", "json")...); !strings.Contains(out, `"userId": "`+want+`"`) {
			t.Errorf("%v: %s", line, out)
		}
	}
	wantUser("second", nil, "whoami")
	wantUser("first", nil, "whoami", "--context", host)
	wantUser("first", nil, "whoami", "--url", first)
	wantUser("first", []string{"TOLLGATE_SERVER=" + first}, "whoami")
	wantUser("second", []string{"TOLLGATE_SERVER=" + first}, "whoami", "--context", "work")
	if out := run(1, nil, "whoami", "--context", "none"); !strings.Contains(out, "there is no context none") {
		t.Error(out)
	}
	if out := run(2, nil, "view", "list", "--context", "none"); !strings.Contains(out, "there is no context none") {
		t.Error(out)
	}
	if out := run(0, nil, "server", "show", "com.example/weather@1.0.0", "--web"); !strings.Contains(out, second+"/console/servers/com.example/weather/versions/1.0.0") {
		t.Error(out)
	}
	if out := run(0, nil, "review", "list", "--web", "--context", host); !strings.Contains(out, first+"/console/reviews") {
		t.Error(out)
	}
	run(0, nil, "context", "use", host)
	wantUser("first", nil, "whoami")
	run(0, nil, "context", "remove", host)
	wantUser("second", nil, "whoami")
	run(0, nil, "context", "remove", "work")
	if ended["first"] != 1 || ended["second"] != 1 {
		t.Errorf("the ended sessions are %v", ended)
	}
	run(1, nil, "context", "use", "work")
	if list := run(0, nil, "context", "list", "-o", "json"); strings.TrimSpace(list) != "[]" {
		t.Errorf("at the end there is %s", list)
	}
}

// TestPairingOfAStranger signs in at a service that answers with a path of another host and a code that
// changes a terminal: the page is one of the service, and the code is printed as text.
func TestPairingOfAStranger(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/auth/login/device" {
			_, _ = w.Write([]byte(`{"deviceCode": "x", "userCode": "A\u001b[2J", "verificationPath": "@evil.example/x", "expiresIn": 0, "interval": 1}`))
		}
	}))
	t.Cleanup(s.Close)
	var out strings.Builder
	program.Run(t.Context(), cli.Process{
		Args:    []string{"login", "--server", s.URL, "--no-browser"},
		Environ: []string{person.CredentialsVariable + "=" + filepath.Join(t.TempDir(), "credentials.json")},
		Stdin:   strings.NewReader(""), Stdout: &out, Stderr: &out,
	})
	if text := out.String(); !strings.Contains(text, s.URL+"/@evil.example/x?code=A%1B%5B2J") || strings.Contains(text, "\x1b") {
		t.Errorf("the command says %q", text)
	}
}
