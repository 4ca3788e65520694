// These tests send requests to the service in this process, and prove what each handler does with
// its input.
package adminapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestMain(m *testing.M) { fixture.Main(m) }

const unknownID = "00000000-0000-4000-8000-000000000000"

type object = map[string]any

// site is a service with an operator, olga, and eve, who has no grant. It writes down the answers
// of want, which must be those of a golden file.
type site struct {
	*fixture.Service
	e         *fixture.Environment
	olga, eve *fixture.Person
	answers   strings.Builder
	seen      strings.Builder // the bodies of all answers
	secrets   []string        // each was seen once, and is nowhere else
}

func openSite(t *testing.T, environ ...string) *site {
	t.Helper()
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), environ...)
	s := &site{e: e}
	t.Cleanup(func() {
		if !t.Failed() {
			s.checkSecrets(t)
			if s.answers.Len() > 0 {
				s.compareAnswers(t)
			}
		}
	})
	s.Service = e.Start(t)
	s.olga = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
	s.eve = e.NewWriter(t, s.Service, "eve@example.com")
	return s
}

// do sends a request below /admin/v1 with headers.
func (s *site) do(t *testing.T, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	a := apiclient.Call(t, method, s.API+"/admin/v1"+path, body, header...)
	_, _ = s.seen.Write(a.Body) // it returns no error
	return a
}

// want sends a request of the operator, and writes the answer down.
func (s *site) want(t *testing.T, status int, method, path string, body any, header ...string) apiclient.Response {
	t.Helper()
	return s.wantAs(t, s.olga.Bearer(), status, method, path, body, header...)
}

// codes are the codes of errors, but for 401 and 403.
var codes = map[int]string{
	http.StatusBadRequest: "validation_error", http.StatusNotFound: "resource_not_found",
	http.StatusConflict: "conflict", http.StatusPreconditionFailed: "precondition_failed",
	http.StatusUnprocessableEntity: "rule_violated", http.StatusServiceUnavailable: "service_unavailable",
}

// wantAs is want with the headers of another caller.
func (s *site) wantAs(
	t *testing.T, caller []string, status int, method, path string, body any, header ...string,
) apiclient.Response {
	t.Helper()
	a := s.do(t, method, path, body, append(header, caller...)...)
	s.answers.WriteString(method + " " + path + " " + strconv.Itoa(a.Status) + " " + string(a.Body) + "\n")
	if a.Status != status || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s: %d %v %s, want %d", method, path, a.Status, a.Header, a.Body, status)
	} else if code := codes[status]; code != "" {
		apiclient.WantAuthError(t, a, code)
	}
	return a
}

// wantWrong sends a request of the operator in which a field is wrong.
func (s *site) wantWrong(t *testing.T, field, method, path string, body any, header ...string) {
	t.Helper()
	var got struct {
		Details struct{ Fields map[string]string }
	}
	a := s.want(t, http.StatusBadRequest, method, path, body, header...)
	if a.Decode(t, &got); got.Details.Fields[field] == "" {
		t.Errorf("%s %s with a wrong %s: %s", method, path, field, a.Body)
	}
}

// play sends the requests of a section of testdata/steps.txt. fill has words in braces and what
// they stand for in turn.
func (s *site) play(t *testing.T, section string, fill ...string) {
	t.Helper()
	content, err := os.ReadFile("testdata/steps.txt")
	must.Succeed(t, err)
	_, steps, found := strings.Cut(string(content), "\n["+section+"]\n")
	if steps, _, _ = strings.Cut(steps, "\n\n"); !found {
		t.Fatalf("there is no section %s", section)
	}
	for line := range strings.Lines(strings.NewReplacer(fill...).Replace(steps)) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if words[0] == "#" {
			continue
		}
		var body any
		if len(words) == 4 {
			body = words[3]
		}
		text, field, _ := strings.Cut(words[0], ":")
		if field != "" {
			s.wantWrong(t, field, words[1], words[2], body)
		} else if status, err := strconv.Atoi(text); err != nil {
			t.Errorf("%s: %v", line, err)
		} else {
			s.want(t, status, words[1], words[2], body)
		}
	}
}

// decode returns the object in an answer.
func decode(t *testing.T, a apiclient.Response) (o object) {
	t.Helper()
	a.Decode(t, &o)
	return o
}

// text returns a member that is a text.
func text(o object, name string) string {
	value, _ := o[name].(string)
	return value
}

// keep notes a secret of an answer.
func (s *site) keep(t *testing.T, secret string) string {
	t.Helper()
	if len(secret) < 20 {
		t.Errorf("%q is no secret", secret)
	}
	s.secrets = append(s.secrets, secret)
	return secret
}

// checkSecrets checks that each secret is in one answer, but not in the log and in no event.
func (s *site) checkSecrets(t *testing.T) {
	rows, err := s.e.OpenDatabase(t).Query("SELECT details FROM audit_events")
	must.Succeed(t, err)
	defer func() { _ = rows.Close() }() // all rows are read, or the test has failed
	written := s.Process.Log()
	for rows.Next() {
		var details string
		must.Succeed(t, rows.Scan(&details))
		written += details
	}
	must.Succeed(t, rows.Err())
	for _, secret := range s.secrets {
		if n := strings.Count(s.seen.String(), secret); n != 1 || strings.Contains(written, secret) {
			t.Errorf("the secret %.12s… is in %d answers, or was written", secret, n)
		}
	}
}

// unstable is what differs in each run, with its replacement.
var unstable = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.0-9]*Z`), "<time>"},
	{regexp.MustCompile(`(cursor=|"nextCursor":")[\w-]+`), "$1<cursor>"},
	{regexp.MustCompile(`code=[\w-]+|"secret":"[\w+/]{43}="`), "<secret>"},
	{regexp.MustCompile(`tg(p|s|view)_[\w-]+`), "tg${1}_<token>"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`), "<host>"},
	{regexp.MustCompile(`("kind":"[a-z]+","version":)"[^"]*"`), `$1""`}, // of a plugin
	{regexp.MustCompile(`"duration":[\d.]+`), `"duration":<duration>`},
	{regexp.MustCompile(`,"state":\{"failingSince":[^}]*\}`), ""}, // it changes while the test runs
}

// compareAnswers compares the answers with the golden file of the test, or writes it.
func (s *site) compareAnswers(t *testing.T) {
	got := s.answers.String()
	for _, u := range unstable {
		got = u.pattern.ReplaceAllString(got, u.replacement)
	}
	path := filepath.Join("testdata", "answers", t.Name()+".txt")
	if *fixture.Update {
		fixture.WriteFile(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	must.Succeed(t, err)
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d differs from the answer. The answers are from there\n%s", path, i+1,
				strings.Join(gotLines[min(i, len(gotLines)):min(i+3, len(gotLines))], "\n"))
		}
	}
}
