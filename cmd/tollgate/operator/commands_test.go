package operator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/operator"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

func TestMain(m *testing.M) { fixture.Main(m) }

// TestCommands runs the commands of transcripts on the database and, with --server, at a service with
// the same records. Each does the same: it prints the same, unless a note says why not, and fails at
// both or at none.
func TestCommands(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, _ *fixture.Environment) {
		for _, s := range readTranscripts(t, "both") {
			t.Run(s.name(), func(t *testing.T) {
				local, far := openSite(t, &s), openSite(t, &s)
				far.more, far.Environ = []string{"--server", far.service.API}, []string{"TOLLGATE_TOKEN=" + far.boss.AccessToken}
				here, there := local.run(t, &s), far.run(t, &s)
				outputs := make([]string, len(s.commands))
				for i, c := range s.commands {
					outputs[i] = here[i].String()
					if here[i] == there[i] {
						continue
					}
					outputs[i] = "! on the database:\n" + outputs[i] + "! at the service:\n" + there[i].String()
					explained := strings.Contains(c.notes, "# differs: ")
					if (here[i].code == 0) != (there[i].code == 0) || here[i].stdout != there[i].stdout && !explained {
						t.Errorf("%s %s differs:\n%s", s.path, c.line, outputs[i])
					}
				}
				s.compare(t, outputs)
			})
		}
	})
}

// TestLocalCommands runs the commands of transcripts that work on the database or on files only.
func TestLocalCommands(t *testing.T) {
	for _, s := range readTranscripts(t, "database") {
		t.Run(s.name(), func(t *testing.T) {
			e := fixture.NewEnvironment(t, "embedded")
			e.Environ = append(e.Environ, s.settings...)
			s.writeFiles(t, e.Dir)
			p := &place{Environment: e, words: []string{"DIR", e.Dir}}
			outputs := make([]string, len(s.commands))
			for i, o := range p.run(t, &s) {
				outputs[i] = o.String()
			}
			s.compare(t, outputs)
		})
	}
}

// site is a service with people: other has no grants, boss may do everything and ada publishes. There
// are two versions of a server with the same remote, and another server.
type site struct {
	place
	service   *fixture.Service
	boss, ada *fixture.Person
}

func openSite(t *testing.T, s *transcript) *site {
	t.Helper()
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, append(fixture.RegistrySettings(), "PUBLIC_URL=https://tools.example.com")...)
	e.Environ = append(e.Environ, s.settings...)
	s.writeFiles(t, e.Dir)
	p := &site{service: e.Start(t)}
	e.NewPerson(t, "other@example.com")
	p.boss = e.NewWriter(t, p.service, "boss@example.com", "operate *", "review *")
	p.ada = e.NewWriter(t, p.service, "ada@example.com", "publish com.example/*")
	for _, published := range []string{"com.example/weather 1.0.0", "com.example/weather 1.1.0", "com.example/news 1.0.0"} {
		name, version, _ := strings.Cut(published, " ")
		p.ada.PostJSON(t, p.service, "/v0.1/publish", fixture.NewServerDocument(name, version)).WantStatus(t, http.StatusOK)
	}
	others := httptest.NewServer(http.HandlerFunc(serveOthers))
	t.Cleanup(others.Close)
	p.place = place{Environment: e, words: []string{"DIR", e.Dir, "UPSTREAM", others.URL}}
	return p
}

// serveOthers is another registry, and the receiver of a webhook at /hook.
func serveOthers(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/hook") {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// the client reports a failure
	_, _ = w.Write([]byte(`{"servers":[{"server":{"name":"io.example/one","description":"One","version":"1.0.0"}},` +
		`{"server":{"name":"io.example/two","description":"","version":"1.0.0"}}],"metadata":{"count":2}}`))
}

// TestEveryCommandIsInATranscript walks all commands of operators. Each is called in a transcript, and
// refuses an unknown flag in one sentence.
func TestEveryCommandIsInATranscript(t *testing.T) {
	called := map[string]bool{}
	for _, folder := range []string{"both", "database"} {
		for _, s := range readTranscripts(t, folder) {
			for _, c := range s.commands {
				words := splitWords(c.line)
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
