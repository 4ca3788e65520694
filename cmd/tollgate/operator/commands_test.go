package operator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/operator"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // each command is a small program; collecting after each costs a third
	fixture.Main(m)
}

// TestCommands runs the commands of transcripts on the database and, with --server, at a service with
// the same records. They print the same, and fail in both cases or in neither, unless a note says why.
func TestCommands(t *testing.T) {
	for _, s := range fixture.ReadTranscripts(t, "both") {
		t.Run(s.Name(), func(t *testing.T) {
			t.Parallel()
			local := openSite(t, &s, fixture.NewEnvironment(t, "embedded"))
			far := openSite(t, &s, otherEnvironment(t))
			far.More = []string{"--server", far.service.API}
			far.Environ = []string{"TOLLGATE_TOKEN=" + far.boss.AccessToken}
			here, there := local.RunAll(t, &s), far.RunAll(t, &s)
			outputs := make([]string, len(s.Commands))
			for i, c := range s.Commands {
				a, b := here[i], there[i]
				same := a.Stdout == b.Stdout && (a.Code == 0) == (b.Code == 0)
				if outputs[i] = a.With(b); same == strings.Contains(c.Notes, "# differs: ") {
					t.Errorf("%s is the same: %t\n%s", c.Line, same, outputs[i])
				}
			}
			s.Compare(t, outputs)
		})
	}
}

// otherEnvironment returns an environment with PostgreSQL and Valkey, if there are servers for it, so
// that what is printed does not depend on the stores.
func otherEnvironment(t *testing.T) *fixture.Environment {
	t.Helper()
	all := fixture.NewEnvironments(t)
	return all[len(all)-1]
}

// TestLocalCommands runs the commands of transcripts that work on the database or on files only.
func TestLocalCommands(t *testing.T) {
	fixture.RunTranscripts(t, "database", func(t *testing.T, s *fixture.Transcript) *fixture.Place {
		return fixture.NewPlace(t, s, fixture.NewEnvironment(t, "embedded"))
	})
}

// site is a service with people: other has no grants, boss may do everything and ada publishes. There
// are two versions of a server with the same remote, and another server.
type site struct {
	*fixture.Place
	service   *fixture.Service
	upstream  string // the address of another registry
	boss, ada *fixture.Person
}

func openSite(t *testing.T, s *fixture.Transcript, e *fixture.Environment) *site {
	t.Helper()
	e.Environ = append(e.Environ, append(fixture.RegistrySettings(), "PUBLIC_URL=https://tools.example.com")...)
	e.Environ = append(e.Environ, s.Settings...)
	p := &site{Place: fixture.NewPlace(t, s, e)}
	others := httptest.NewServer(http.HandlerFunc(serveOthers))
	t.Cleanup(others.Close) // after the service has stopped
	p.upstream, p.service = others.URL, e.Start(t)
	p.Words = append(p.Words, "UPSTREAM", others.URL)
	e.NewPerson(t, "other@example.com")
	p.boss = e.NewWriter(t, p.service, "boss@example.com", "operate *", "review *")
	p.ada = e.NewWriter(t, p.service, "ada@example.com", "publish com.example/*")
	for _, published := range []string{"weather 1.0.0", "weather 1.1.0", "news 1.0.0"} {
		name, version, _ := strings.Cut("com.example/"+published, " ")
		doc := fixture.NewServerDocument(name, version)
		p.ada.PostJSON(t, p.service, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
	}
	return p
}

const upstream = `{"servers":[{"server":{"name":"com.example/news","description":"Mine","version":"2.0.0"}},
	{"server":{"name":"io.example/two","description":"","version":"1.0.0"}}],"metadata":{"count":2}}`

// serveOthers is another registry, which does not answer at /slow, and receivers of webhooks at /hook,
// /moved and /broken. What the registry lists is never taken over.
func serveOthers(w http.ResponseWriter, r *http.Request) {
	switch top, _, _ := strings.Cut(r.URL.Path[1:], "/"); top {
	case "slow":
		<-r.Context().Done()
	case "broken":
		w.WriteHeader(http.StatusInternalServerError)
	case "moved":
		http.Redirect(w, r, "/hook", http.StatusTemporaryRedirect)
	case "hook":
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, upstream) // the client may be gone
	}
}

// TestEveryCommandIsInATranscript walks all commands of operators. Each is called in a transcript, and
// refuses an unknown flag in one sentence.
func TestEveryCommandIsInATranscript(t *testing.T) {
	called := map[string]bool{}
	for _, folder := range []string{"both", "database"} {
		for _, s := range fixture.ReadTranscripts(t, folder) {
			for _, c := range s.Commands {
				words := fixture.SplitWords(c.Line)
				for n := range words {
					called[strings.Join(words[:n+1], " ")] = true
				}
			}
		}
	}
	e := fixture.NewEnvironment(t, "embedded")
	for _, top := range operator.Commands(cli.Process{}) {
		cli.VisitCommands(top, func(c *cobra.Command) {
			path := c.CommandPath()
			if c.HasSubCommands() && !c.Runnable() {
				return
			}
			if !called[path] {
				t.Errorf("%s is in no transcript", path)
			}
			stdout, stderr, code := e.TryCommand(t, "", append(strings.Fields(path), "--nonsense")...)
			if code != cli.ExitFailed || stdout != "" || stderr != "tollgate: unknown flag: --nonsense\n" {
				t.Errorf("%s --nonsense: exit code %d, %q, %q", path, code, stdout, stderr)
			}
		})
	}
}
