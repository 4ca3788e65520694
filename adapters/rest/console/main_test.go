package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/template/parse"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

func TestMain(m *testing.M) {
	if err := templates.read(); err != nil {
		panic(err)
	}
	fixture.Main(m, templates.checkShown)
}

// unshown has the templates of pages that no test has shown yet, with a text of each that is always
// on its page.
type unshown struct {
	mu    sync.Mutex
	texts map[string]string
}

var templates unshown

// read reads all templates of pages.
func (u *unshown) read() error {
	u.texts = map[string]string{}
	files, err := filepath.Glob("*/templates/*.html")
	for _, file := range files {
		if strings.HasPrefix(file, "styletest/") {
			continue // it is served by tests alone
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		tree := parse.New(file)
		tree.Mode = parse.SkipFuncCheck
		all := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(text), "", "", all); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if main := all["main"]; main != nil {
			u.texts[file] = longestText(main.Root)
		}
	}
	return err
}

// longestText returns the longest text of a list that is shown whatever the page has; only if there is
// none, one of a part that needs a value.
func longestText(list *parse.ListNode) string {
	longest, inner := "", ""
	for _, n := range list.Nodes {
		text := ""
		switch n := n.(type) {
		case *parse.TextNode:
			text = string(n.Text)
		case *parse.WithNode:
			inner = longestText(n.List)
		}
		if len(text) > len(longest) {
			longest = text
		}
	}
	if strings.TrimSpace(longest) == "" {
		return inner
	}
	return longest
}

// helpLink is what follows the first heading of each page.
var helpLink = regexp.MustCompile(` <a class="help"[^>]*></a>`)

// see notes that a page was shown.
func (u *unshown) see(body string) {
	body = helpLink.ReplaceAllString(body, "")
	u.mu.Lock()
	defer u.mu.Unlock()
	for file, text := range u.texts {
		if strings.Contains(body, text) {
			delete(u.texts, file)
		}
	}
}

// checkShown returns an error if there are templates that the tests of the package have not shown.
func (u *unshown) checkShown() (err error) {
	for file, text := range u.texts {
		err = errors.Join(err, fmt.Errorf("no test shows the page of %s, with the text %q", file, text))
	}
	return err
}

// browser is a browser of the pages.
type browser struct{ *webtest.Browser }

func newBrowser(t *testing.T, s *fixture.Service) *browser {
	t.Helper()
	b := webtest.New(t, s.API)
	b.Seen = templates.see
	return &browser{b}
}

func (b *browser) signIn(p *fixture.Person) {
	b.T.Helper()
	b.SignIn(p.Email, fixture.Password)
}

func (b *browser) verify(e *fixture.Environment, p *fixture.Person, status int) *webtest.Browser {
	b.T.Helper()
	return b.Verify(e, p.Email, status)
}

// signedIn returns a browser in which a person is signed in.
func signedIn(t *testing.T, s *fixture.Service, p *fixture.Person) *browser {
	t.Helper()
	b := newBrowser(t, s)
	b.signIn(p)
	return b
}

// wantVersion checks whether a version of a server is listed: the status of its document.
func wantVersion(t *testing.T, s *fixture.Service, name, version string, status int) {
	t.Helper()
	apiclient.Call(t, "GET", fixture.ServerURL(s, name, "/versions/"+version), nil).WantStatus(t, status)
}

// newEnvironment returns an environment for a test, which runs at once with others.
func newEnvironment(t *testing.T) *fixture.Environment {
	t.Helper()
	t.Parallel()
	return fixture.NewEnvironment(t, "embedded")
}

// run starts a service whose limits and checks of packages are off.
func run(t *testing.T, e *fixture.Environment, settings ...string) *fixture.Service {
	t.Helper()
	return e.Start(t, append(fixture.RegistrySettings(), settings...)...)
}

// start starts a service in a new environment.
func start(t *testing.T, settings ...string) (*fixture.Environment, *fixture.Service) {
	t.Helper()
	e := newEnvironment(t)
	return e, run(t, e, settings...)
}

// openVerified returns a browser in which a person has full trust.
func openVerified(t *testing.T, e *fixture.Environment, s *fixture.Service, p *fixture.Person) *browser {
	t.Helper()
	b := signedIn(t, s, p)
	b.Open("/console/step-up?next=/console/account", http.StatusOK)
	b.verify(e, p, http.StatusOK)
	return b
}

// newVerified returns a browser in which a new person with grants has full trust.
func newVerified(t *testing.T, e *fixture.Environment, s *fixture.Service, email string, grants ...string) *browser {
	t.Helper()
	return openVerified(t, e, s, e.NewPerson(t, email, grants...))
}

// publishVersion publishes a version of a server as a person.
func publishVersion(t *testing.T, s *fixture.Service, p *fixture.Person, name, version string) {
	t.Helper()
	p.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, version)).WantStatus(t, http.StatusOK)
}

// newOperator returns a browser in which a person with the grant operate has full trust.
func newOperator(t *testing.T, e *fixture.Environment, s *fixture.Service) *browser {
	t.Helper()
	b := newVerified(t, e, s, "bea@example.com", "operate *")
	b.Open("/console/operator", http.StatusOK)
	return b
}
