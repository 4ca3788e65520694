package mirroring

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

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
	must.Succeed(t, err)
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
