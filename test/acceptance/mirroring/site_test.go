package mirroring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// site is a registry on two instances. ada publishes, bea reviews.
type site struct {
	e          *fixture.Environment
	one, other *fixture.Service
	ada, bea   *fixture.Person
}

// openSite starts the instances and signs the people in.
func openSite(t *testing.T, e *fixture.Environment, environ ...string) *site {
	t.Helper()
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), environ...)
	s := &site{e: e, one: e.Start(t), other: e.Start(t)}
	s.ada = e.NewWriter(t, s.one, "ada@example.com", "publish *", "edit *")
	s.bea = e.NewWriter(t, s.one, "bea@example.com", "review *")
	return s
}

func (s *site) send(t *testing.T, by *fixture.Person, method, path string, body any) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, method, s.one.API+path, body, by.Bearer()...)
}

// add adds a mirror that only commands read: the next read by the service is a week away after the
// first one.
func (s *site) add(t *testing.T, name string, up *upstream.Server, options ...string) {
	t.Helper()
	s.e.RunCommand(t, "", append([]string{"mirror", "add", name, up.URL, "--interval", "168h"}, options...)...)
}

// summary is the output of a sync.
type summary struct {
	Full                                                                    bool
	Records, Servers, Added, Replaced, Status, Submitted, Shadowed, Refused int
}

// sync reads the other registry by a command.
func (s *site) sync(t *testing.T, name string, options ...string) summary {
	t.Helper()
	var got summary
	s.e.ReadCommand(t, &got, append([]string{"mirror", "sync", name}, options...)...)
	return got
}

// failSync reads the other registry by a command that must fail, and returns what it says.
func (s *site) failSync(t *testing.T, name string, options ...string) string {
	t.Helper()
	stdout, stderr, code := s.e.TryCommand(t, "", append([]string{"mirror", "sync", name}, options...)...)
	if code != 1 || stdout != "" {
		t.Errorf("mirror sync ended with %d and printed %s", code, stdout)
	}
	return stderr
}

// mirrorState is a mirror as the command lists it.
type mirrorState struct {
	Name, URL, State          string
	LastSuccess, FailingSince *string
	Reason                    string
	Servers                   int
	Refused                   map[string]int
}

// state returns a mirror as the command lists it.
func (s *site) state(t *testing.T, name string) mirrorState {
	t.Helper()
	var all []mirrorState
	s.e.ReadCommand(t, &all, "mirror", "list")
	i := slices.IndexFunc(all, func(m mirrorState) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("mirror list does not have %s: %+v", name, all)
	}
	return all[i]
}

// listed returns all versions that an instance lists, deleted ones too, as "name@version status"
// with " of MIRROR" for mirrored ones. search is a part of their names.
func listed(at *fixture.Service, search string) (lines []string, err error) {
	path, cursor := at.API+"/v0.1/servers?limit=100&include_deleted=true&search="+search, ""
	for {
		a, err := apiclient.TryCall("GET", path+cursor, nil)
		if err != nil {
			return nil, err
		}
		list, err := parsePage(a)
		if err != nil {
			return nil, err
		}
		for _, r := range list.Servers {
			line := fmt.Sprintf("%v@%v %s", r.Server["name"], r.Server["version"], r.Meta.Official.Status)
			if r.Meta.Origin != nil {
				line += " of " + r.Meta.Origin.Mirror
			}
			lines = append(lines, line)
		}
		if list.Metadata.NextCursor == "" {
			return lines, nil
		}
		cursor = "&cursor=" + list.Metadata.NextCursor
	}
}

// page is a list as the API answers with it.
type page struct {
	Servers []struct {
		Server map[string]any
		Meta   struct {
			Official struct {
				Status, StatusMessage, PublishedAt string
				IsLatest                           bool
			} `json:"io.modelcontextprotocol.registry/official"`
			Origin *struct{ Mirror, URL, FetchedAt string } `json:"dev.tollgate/origin"`
		} `json:"_meta"`
	}
	Metadata struct{ NextCursor string }
}

func parsePage(a apiclient.Response) (p page, err error) {
	if a.Status != http.StatusOK {
		return p, fmt.Errorf("status %d: %s", a.Status, a.Body)
	}
	return p, json.Unmarshal(a.Body, &p)
}

// wantListed waits until both instances list exactly these versions of servers whose names have a
// part.
func (s *site) wantListed(t *testing.T, search string, want ...string) {
	t.Helper()
	for i, at := range []*fixture.Service{s.one, s.other} {
		var got []string
		await.Until(t, fmt.Sprintf("instance %d lists %q", i+1, want), func() bool {
			var err error
			got, err = listed(at, search)
			return err == nil && slices.Equal(got, want)
		})
	}
}

// records returns records of servers, active with the version 1.0.0. The names begin with
// com.example and the word.
func records(word string, n int) []upstream.Record {
	all := make([]upstream.Record, n)
	for i := range all {
		all[i] = upstream.Record{Document: upstream.Document(serverOf(word, i), "1.0.0", "Forecasts")}
	}
	return all
}

func serverOf(word string, i int) string { return fmt.Sprintf("com.example.%s/s%04d", word, i) }

// linesOf returns the lines of listed for records.
func linesOf(word string, n int, mirror string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = serverOf(word, i) + "@1.0.0 active of " + mirror
	}
	return all
}

func wantContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not contain %q", text, p)
		}
	}
}
