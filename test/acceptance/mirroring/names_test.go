package mirroring

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// reservedNames is the setting of the names that checkNames needs.
const reservedNames = "RESERVED_NAMESPACES=com.example.reserved/*"

// refusedLine is a line of mirror diff.
type refusedLine struct{ ServerName, Version, Rule, Reason string }

// checkNames checks that names of this registry are not mirrored (contract C-71).
func checkNames(t *testing.T, s *site) {
	s.e.NewWriter(t, s.one, "dee@example.com", "publish com.example.granted/*")
	up := upstream.Start(t, append(records("granted", 1), records("reserved", 1)...)...)
	up.Put(
		upstream.Record{Document: upstream.Document("com.Example.RESERVED/x", "1.0.0", "Forecasts")},
		upstream.Record{Document: upstream.Document("com.example.names/free", "1.0.0", "Forecasts")},
		upstream.Record{Document: `{"name":"com.example.names/bad","version":"1.0.0","description":""}`},
	)
	_, stderr, code := s.e.TryCommand(t, "", "mirror", "add", "names", up.URL, "--interval", "168h")
	if code != 0 || !strings.Contains(stderr, "without --include") {
		t.Errorf("mirror add ended with %d and warned %q", code, stderr)
	}
	if got := s.sync(t, "names", "--full"); got.Refused != 4 || got.Servers != 1 {
		t.Errorf("the sync: %+v", got)
	}
	s.wantListed(t, "example.granted")
	s.wantListed(t, "example.reserved")
	s.wantListed(t, "example.names", "com.example.names/free@1.0.0 active of names")
	var diff struct{ Refused []refusedLine }
	s.e.ReadCommand(t, &diff, "mirror", "diff", "names")
	rules := map[string]string{}
	for _, r := range diff.Refused {
		rules[r.ServerName] = r.Rule
	}
	want := map[string]string{
		"com.Example.RESERVED/x": "reserved", serverOf("reserved", 0): "reserved", serverOf("granted", 0): "granted",
		"com.example.names/bad": "document",
	}
	if fmt.Sprint(rules) != fmt.Sprint(want) {
		t.Errorf("refused: %+v", diff.Refused)
	}
	if state := s.state(t, "names"); fmt.Sprint(state.Refused) != "map[document:1 granted:1 reserved:2]" {
		t.Errorf("mirror list counts %v", state.Refused)
	}
	wantContains(t, s.e.RunCommand(t, "", "mirror", "list"), "document 1, granted 1, reserved 2")
}

// checkTakeover publishes servers that a mirror has, on two instances, while commands read for it
// (contract C-72).
func checkTakeover(t *testing.T, s *site) {
	const servers = 12
	cem := s.e.NewWriter(t, s.one, "cem@example.com", "publish com.example.won/*")
	up := upstream.Start(t, records("won", servers)...)
	s.add(t, "won", up, "--include", "com.example.won/*")
	s.sync(t, "won")
	s.wantListed(t, "example.won", linesOf("won", servers, "won")...)

	var reads sync.WaitGroup
	reads.Go(func() {
		for i := range 4 {
			for n := range servers {
				up.Put(upstream.Record{
					Document: upstream.Document(serverOf("won", n), fmt.Sprintf("1.%d.0", i+1), "Forecasts"),
				})
			}
			s.sync(t, "won", "--full")
		}
	})
	answers := fixture.CallInParallel(t, servers, func(i int) (apiclient.Response, error) {
		at := []*fixture.Service{s.one, s.other}[i%2]
		return apiclient.TryCall("POST", at.API+"/v0.1/publish", fixture.NewServerDocument(serverOf("won", i), "1.0.0"),
			cem.Bearer()...)
	})
	reads.Wait()
	for i, a := range answers {
		if a.Status != http.StatusOK {
			t.Errorf("publication %d: %d %s", i, a.Status, a.Body)
		}
	}
	got := s.sync(t, "won", "--full")
	if got.Shadowed != servers || got.Servers != 0 || got.Added+got.Replaced+got.Status != 0 {
		t.Errorf("the sync of servers that were published here: %+v", got)
	}
	lines, err := listed(s.other, "example.won")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		want := " deleted"
		if strings.Contains(line, "@1.0.0 ") {
			want = " active"
		}
		if !strings.HasSuffix(line, want) {
			t.Errorf("listed is %q, want it%s", line, want)
		}
	}
	for i := range servers {
		a := apiclient.Call(t, "GET", s.one.API+"/v0.1"+fixture.ServerPath(serverOf("won", i), "latest"), nil).
			WantStatus(t, http.StatusOK)
		wantContains(t, string(a.Body), `"version":"1.0.0"`, "Answers what the weather will be")
	}
	apiclient.Call(t, "POST", s.one.API+"/v0.1/publish", fixture.NewServerDocument(serverOf("won", 0), "2.0.0"),
		cem.Bearer()...).WantStatus(t, http.StatusOK)
}
