package registryapi_test

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
)

// TestPingAndVersion requires the responses of contract P-22, also for a program that does not know
// how it was built.
func TestPingAndVersion(t *testing.T) {
	for _, c := range []struct {
		build registryapi.Build
		want  string
	}{
		{registryapi.Build{}, `{"version":"unknown","git_commit":"unknown","build_time":"unknown"}`},
		{registryapi.Build{Version: "v1.2.3"}, `{"version":"v1.2.3","git_commit":"unknown","build_time":"unknown"}`},
		{
			registryapi.Build{Version: "v1.2.3", Revision: "abc", Time: "2027-01-15T08:00:00Z"},
			`{"version":"v1.2.3","git_commit":"abc","build_time":"2027-01-15T08:00:00Z"}`,
		},
	} {
		servers := newServers(t)
		url := serve(t, registryapi.Config{Build: c.build, Log: discardLog()}, servers, nil)
		for _, prefix := range []string{"/v0.1", "/v0"} {
			call(t, http.MethodGet, url+prefix+"/version", "").expect(t, 200, c.want)
			call(t, http.MethodGet, url+prefix+"/ping", "").expect(t, 200, `{"pong":true}`)
		}
		if servers.reads != 0 {
			t.Errorf("the servers were read %d times", servers.reads)
		}
	}
}
