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
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// echo returns the values of each read and records them.
type echo struct {
	registrystore.SnapshotReader
	mu       sync.Mutex
	recorded []string
}

func (e *echo) recordCall(s ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, strings.Join(s, " "))
}

func (e *echo) List(_ context.Context, q registrystore.Query) (registrystore.Page, error) {
	e.recordCall(q.Search)
	return registrystore.Page{Records: []registry.Record{{Document: []byte(`"` + q.Search + `"`)}}}, nil
}

func (e *echo) Version(
	_ context.Context, name registry.Name, version registry.Version, _ bool,
) (registry.Record, error) {
	e.recordCall(name.String(), version.String())
	return registry.Record{Document: []byte(`"` + name.String() + " " + version.String() + `"`)}, nil
}

// TestParallelRequestsDoNotMix sends parallel requests. The server reuses the memory of a request,
// so a handler that does not copy its values would mix them.
func TestParallelRequestsDoNotMix(t *testing.T) {
	const clients, requests = 8, 40
	e := &echo{}
	url := serve(t, registryapi.Config{}, e, nil)
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := range requests {
				name := fmt.Sprintf("com.client-%d-%d", client, i)
				for path, want := range map[string]string{
					"/v0.1/servers?search=" + name: `{"server":"` + name + `"`,
					"/v0/servers/" + name + "%2Fx/versions/1." +
						name: `{"server":"` + name + "/x 1." + name + `"`,
					"/v0/servers/io." + name + "%2Fx/versions/" + name +
						"-end": `{"server":"io.` + name + "/x " + name + `-end"`,
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
			name := fmt.Sprintf("com.client-%d-%d", client, i)
			for _, want := range []string{name, name + "/x 1." + name, "io." + name + "/x " + name + "-end"} {
				if !seen[want] {
					t.Errorf("%q was not recorded unchanged", want)
				}
			}
		}
	}
}
