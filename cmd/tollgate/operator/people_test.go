package operator_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAuthenticator enrols an authenticator and activates it with its code. In each state of it the
// lists of people show the state, and what the state does not allow is refused in one sentence.
func TestAuthenticator(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	ada := e.NewPerson(t, "ada@example.com")
	try := func(args ...string) (stdout, stderr string, code int) {
		return e.TryCommand(t, "", slices.Concat([]string{"user"}, args, []string{"--email", ada.Email})...)
	}
	wantState := func(state string, refused ...string) {
		t.Helper()
		for _, shown := range []string{"none", "pending", "active"} {
			var people []struct{ MFA, MFAEnrolledAt string }
			e.ReadCommand(t, &people, "user", "list", "--mfa", shown)
			if found := len(people) == 1; found != (shown == state) ||
				found && (people[0].MFAEnrolledAt == "") != (state == "none") {
				t.Errorf("%s: the people with the state %s are %+v", state, shown, people)
			}
		}
		out, _, _ := try("show")
		if !strings.Contains(strings.Join(strings.Fields(out), " "), "mfa "+state) {
			t.Errorf("user show: %s, want %s", out, state)
		}
		stdout, stderr, code := try(refused[1:]...)
		if code != cli.ExitFailed || stdout != "" || !strings.Contains(stderr, refused[0]) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %q, %q", refused, code, stdout, stderr)
		}
	}
	wantState("none", "enrol one first", "enrol-mfa", "--activate", "123456")
	out, note, _ := try("enrol-mfa")
	if !strings.Contains(out, "otpauth://totp/Tollgate:ada%40example.com?secret=") || strings.Count(out, "\n") != 2 ||
		!strings.Contains(note, "--activate") {
		t.Errorf("enrol-mfa: %s%s", out, note)
	}
	wantState("pending", "the code is wrong", "enrol-mfa", "--activate", "nonsense")
	app := e.EnrolAuthenticator(t, ada)
	if len(app.Recovery) != 10 {
		t.Errorf("the recovery codes are %v", app.Recovery)
	}
	wantState("active", "disable it first", "enrol-mfa")
	if _, stderr, code := try("disable-mfa"); code != cli.ExitOK {
		t.Errorf("disable-mfa: %s", stderr)
	}
	wantState("none", "no authenticator", "disable-mfa")
	try("enrol-mfa")
	var enrolled struct{ OTPAuthURI string }
	e.ReadCommand(t, &enrolled, "user", "enrol-mfa", "--email", ada.Email)
	again := &fixture.Authenticator{URI: enrolled.OTPAuthURI}
	if out, _, _ := try("enrol-mfa", "--activate", again.Code(t, 0)); !strings.HasPrefix(out, "RECOVERY CODES\n") ||
		strings.Count(out, "\n") != 11 {
		t.Errorf("activate: %s", out)
	}
}

// TestLongPassword: what is longer than any password is not read to its end.
func TestLongPassword(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	add := []string{"user", "add", "--email", "a@example.com", "--name", "N", "--password-stdin"}
	_, stderr, code := e.TryCommand(t, strings.Repeat("x", 2000), add...)
	if code != cli.ExitFailed || stderr != "tollgate: the password is too long\n" {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// TestCompletion completes names and IDs from the service, and nothing without one.
func TestCompletion(t *testing.T) {
	s := openSite(t, &fixture.Transcript{}, fixture.NewEnvironment(t, "embedded"))
	var added []struct{ ID string }
	s.ReadCommand(t, &added, "webhook", "add", "https://hooks.example.com/t", "--events", "published")
	for _, command := range []string{
		"view add data", "view add partners", "service-account set ci", "mirror add slow https://registry.invalid",
	} {
		s.RunCommand(t, "", strings.Fields(command)...)
	}
	for command, want := range map[string]string{
		"view remove": "data partners", "view remove p": "partners", "view token add": "data partners",
		"view remove data": "", "view add": "", "service-account token list": "ci", "mirror sync": "slow",
		"webhook test": added[0].ID, "provider test": "", "publisher remove": "", "review show": "",
	} {
		words := strings.Fields(command)
		if depth := len(words); words[depth-1] != "p" {
			words = append(words, "")
		}
		service := []string{"TOLLGATE_SERVER=" + s.service.API, "TOLLGATE_TOKEN=" + s.boss.AccessToken}
		for _, environ := range [][]string{service, nil} {
			e := fixture.Environment{Environ: environ}
			stdout, _, _ := e.TryCommand(t, "", append([]string{"__completeNoDesc"}, words...)...)
			offered, directive, _ := strings.Cut(stdout, ":")
			if environ == nil {
				want = ""
			}
			if got := strings.Join(strings.Fields(offered), " "); got != want || strings.TrimSpace(directive) != "4" {
				t.Errorf("%s (%d settings) offers %q, %q, want %q", command, len(environ), got, directive, want)
			}
		}
	}
}

// TestRefusedReviews approves everything that waits, of which one has the remote of another: it is
// reported, and waits further.
func TestRefusedReviews(t *testing.T) {
	s := openSite(t, &fixture.Transcript{Settings: []string{"REGISTRY_REVIEW=on", "REMOTE_URL_UNIQUE=true"}},
		fixture.NewEnvironment(t, "embedded"))
	s.Environ = append(s.Environ, "TOLLGATE_TOKEN="+s.boss.AccessToken)
	s.RunCommand(t, "", "review", "approve", "--all-pending")
	for _, more := range [][]string{nil, {"--server", s.service.API}} {
		for _, name := range []string{"com.example/first", "com.example/second"} {
			doc := fixture.NewServerDocument(name+strconv.Itoa(len(more)), "1.0.0")
			doc["remotes"] = fixture.NewServerDocument("com.example/both"+strconv.Itoa(len(more)), "1.0.0")["remotes"]
			s.ada.PostJSON(t, s.service, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
		}
		stdout, stderr, code := s.TryCommand(t, "", append([]string{"review", "approve", "--all-pending"}, more...)...)
		if code != cli.ExitFailed || strings.Count(stdout, " approved ") != 1 ||
			strings.Count(stdout, " pending ") != 1 || !strings.HasPrefix(stderr, "not approved: com.example/second") ||
			!strings.HasSuffix(stderr, "tollgate: 1 review could not be approved\n") {
			t.Errorf("%v: exit code %d\n%s%s", more, code, stdout, stderr)
		}
		var waiting []struct{ ID string }
		s.ReadCommand(t, &waiting, "review", "list")
		s.RunCommand(t, "", "review", "reject", waiting[0].ID, "--comment", "no")
	}
}

// TestSessionTimes checks that the list of sessions says when a session ends, and not when it was last used.
func TestSessionTimes(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	ada := e.NewPerson(t, "ada@example.com")
	ada.Login(t, e.Start(t))
	lines := strings.Split(e.RunCommand(t, "", "session", "list", "--email", ada.Email, "-o", "wide"), "\n")
	columns := regexp.MustCompile(` {2,}`).Split(lines[1], -1)
	if n := len(columns); n < 5 || columns[n-2] <= columns[n-3] || columns[n-3] < columns[n-4] {
		t.Errorf("a session has the columns %q", columns)
	}
}

// TestChangedMeanwhile checks that a change at a service does not undo that of another operator which came between the
// reading and the writing of the command.
func TestChangedMeanwhile(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	boss := e.NewWriter(t, s, "boss@example.com", "operate *")
	put := func(description string) {
		apiclient.Call(t, "PUT", s.API+"/admin/v1/service-accounts/ci", map[string]string{"description": description}, boss.Bearer()...)
	}
	put("before")
	target, err := url.Parse(s.API)
	must.Succeed(t, err)
	service := httputil.NewSingleHostReverseProxy(target)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			put("of another operator")
		}
		service.ServeHTTP(w, r)
	}))
	defer between.Close()
	e.Environ = []string{"TOLLGATE_TOKEN=" + boss.AccessToken}
	_, stderr, code := e.TryCommand(t, "", "service-account", "set", "ci", "--description", "mine", "--server", between.URL)
	list := e.RunCommand(t, "", "service-account", "list", "--server", s.API)
	if code != cli.ExitFailed || stderr == "" || !strings.Contains(list, "of another operator") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, list)
	}
}
