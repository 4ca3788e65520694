package httpapi

import (
	"html"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

var commandOfDocs = regexp.MustCompile(`(?s)<article id="(\w+)".*?<pre class="command">(.*?)</pre>`)

// partOfDocs matches the heading of a part on the page that lists all.
var partOfDocs = regexp.MustCompile(`-heading"><a href="(/docs/[a-z0-9-]+)">`)

// TestCommandsOfDocs runs each curl command of /docs, in a shell that is prepared as the page says.
// The service must accept each one; the objects in the examples need not exist.
func TestCommandsOfDocs(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish com.example/*", "edit com.example/*")
	ada.Login(t, s)
	ada.StepUp(t, e, s)
	fixture.WriteFile(t, filepath.Join(e.Dir, ".curlrc"), `write-out = "\n%{http_code}"`)

	index := apiclient.Call(t, "GET", s.API+"/docs", nil).WantStatus(t, http.StatusOK)
	var pages string
	for _, link := range partOfDocs.FindAllStringSubmatch(string(index.Body), -1) {
		pages += string(apiclient.Call(t, "GET", s.API+link[1], nil).WantStatus(t, http.StatusOK).Body)
	}
	commands := commandOfDocs.FindAllStringSubmatch(pages, -1)
	if len(commands) < 35 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	// The published server must exist for the other calls.
	i := slices.IndexFunc(commands, func(c []string) bool { return c[1] == "publishServer" })
	if i < 0 {
		t.Fatal("the page does not say how to publish")
	}
	commands = slices.Insert(slices.Delete(slices.Clone(commands), i, i+1), 0, commands[i])
	answered := map[string]int{}
	for _, c := range commands {
		cmd := exec.Command("bash", "-c", html.UnescapeString(c[2]))
		cmd.Env = append(slices.Clone(e.Environ), "CURL_HOME="+e.Dir, "TOLLGATE="+s.API, "TOKEN="+ada.AccessToken)
		printed, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", c[1], err)
		}
		last := strings.LastIndexByte(string(printed), '\n') + 1
		status, err := strconv.Atoi(string(printed[last:]))
		if err != nil {
			t.Fatalf("%s printed %s", c[1], printed)
		}
		answered[c[1]] = status
		wrong := slices.Contains(notUnderstood, status) || status >= 500 && status != http.StatusNotImplemented
		if wrong && !slices.Contains(understood, c[1]) {
			t.Errorf("%s is answered %d: %s", c[1], status, printed)
		}
	}
	for _, id := range []string{
		"listServers", "publishServer", "setServerVersionStatus", "login", "initiateStepUp", "listDevices",
		"listMethods",
	} {
		if answered[id] != http.StatusOK {
			t.Errorf("%s is answered %d", id, answered[id])
		}
	}
}

// notUnderstood are the statuses of malformed requests.
var notUnderstood = []int{
	http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
}

// understood holds operations whose examples are correct and return 400: the challenge, the token of
// the link and the provider of the logout token do not exist, and the version has the status already.
var understood = []string{"verifyStepUp", "resetPassword", "setServerStatus", "logOutAtCompany"}
