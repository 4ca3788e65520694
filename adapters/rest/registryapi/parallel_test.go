package registryapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
)

// echo returns the values of each request and records them.
type echo struct {
	registryStub
	mu       sync.Mutex
	recorded []string
}

func (e *echo) recordCall(s ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, strings.Join(s, " "))
}

func (e *echo) List(_ context.Context, q browsing.Query) (browsing.Page, error) {
	e.recordCall(q.Search)
	return browsing.Page{NextCursor: q.Search}, nil
}

func (e *echo) Version(_ context.Context, name, version, _ string) (registry.Record, error) {
	e.recordCall(name, version)
	return registry.Record{Document: []byte(`"` + name + " " + version + `"`)}, nil
}

// TestParallelRequestsDoNotMix sends parallel requests. The server reuses the memory of a request,
// so a handler that does not copy its values would mix them.
func TestParallelRequestsDoNotMix(t *testing.T) {
	const clients, requests = 8, 40
	e := &echo{}
	url := serve(t, registryapi.Config{}, e, e)
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := range requests {
				name := fmt.Sprintf("client-%d-%d", client, i)
				for path, want := range map[string]string{
					"/v0.1/servers?search=" + name:                             `"nextCursor":"` + name + `"`,
					"/v0/servers/" + name + "%2Fx/versions/" + name:            `{"server":"` + name + "/x " + name + `"`,
					"/v0/servers/plain-" + name + "/versions/" + name + "-end": `{"server":"plain-` + name + " " + name + `-end"`,
				} {
					response, err := http.Get(url + path)
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(response.Body)
					response.Body.Close()
					if err != nil || !strings.Contains(string(body), want) {
						t.Errorf("%s: %v %s", path, err, body)
					}
				}
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, k := range e.recorded {
		seen[k] = true
	}
	for client := range clients {
		for i := range requests {
			name := fmt.Sprintf("client-%d-%d", client, i)
			for _, want := range []string{name, name + "/x " + name, "plain-" + name + " " + name + "-end"} {
				if !seen[want] {
					t.Errorf("%q was not recorded unchanged", want)
				}
			}
		}
	}
}
