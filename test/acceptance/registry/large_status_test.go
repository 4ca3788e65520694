package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestStatusOfManyLargeVersions changes the status of versions with 400 KiB each. A login meanwhile
// must not wait for the answer to be sent. In a long run there are 300, and the service must not hold
// their documents.
func TestStatusOfManyLargeVersions(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		start, versions := e.StartProcess, 300
		if testing.Short() {
			start, versions = e.Start, 20
		}
		s := start(t, append(fixture.RegistrySettings(), "AUTH_RATE_LIMIT=0")...)
		checkStatusAllLarge(t, &registry{e, s, e.NewWriter(t, s, "writer@example.com", "publish *")}, versions)
	})
}

func checkStatusAllLarge(t *testing.T, r *registry, versions int) {
	t.Helper()
	// The documents and the answer of a long run together would be 500 MiB and more.
	const name, size, grown = "com.example.status.large/server", 400 << 10, 250 << 20
	seedLarge(t, r, name, versions, size)
	before := 0
	if !testing.Short() {
		before = r.s.PeakMemory(t)
	}
	bob := r.NewPerson(t, "bob@example.com")
	n, changed := r.setStatusAll(t, name, "deprecated", func() { bob.Login(t, r.s) })
	if n < versions*size || changed != versions {
		t.Errorf("the answer has %d bytes and %d versions, want %d of %d bytes each", n, changed, versions, size)
	}
	if !testing.Short() {
		if after := r.s.PeakMemory(t); after > before+grown {
			t.Errorf("the service grew from %d to %d MiB", before>>20, after>>20)
		}
	}
	wantFault(t, r.send(t, "PATCH", fixture.ServerPath(name)+"/status", map[string]string{"status": "deprecated"}),
		http.StatusBadRequest, "no changes")

	// A version that does not change separates the others into two ranges.
	r.setStatus(t, name, "1.0.7", "deleted")
	if n, changed := r.setStatusAll(t, name, "deleted", func() {}); changed != versions-1 || n < (versions-1)*size {
		t.Errorf("%d versions changed in %d bytes, want all but one", changed, n)
	}
	for _, version := range []string{"1.0.0", "1.0.7", "1.0.12", fmt.Sprintf("1.0.%d", versions-1)} {
		if got := decodeRecord(t,
			r.get(t, fixture.ServerPath(name, version)+"?include_deleted=true")); got.Official().Status != "deleted" {
			t.Errorf("%s is %+v", version, got.Official())
		}
	}
}

// seedLarge imports versions of a server with large documents.
func seedLarge(t *testing.T, r *registry, name string, versions, size int) {
	t.Helper()
	file, err := os.CreateTemp(r.Dir, "large-*.json")
	must.Succeed(t, err)
	defer os.Remove(file.Name())
	filler := strings.Repeat("some text, ü ", size/14+1)
	begin := `{"servers":[`
	for i := range versions {
		if _, err := file.WriteString(begin); err != nil {
			t.Fatal(err)
		}
		begin = ","
		doc := fixture.NewServerDocument(name, fmt.Sprintf("1.0.%d", i))
		remote := doc["remotes"].([]any)[0].(map[string]any)
		remote["headers"] = []any{map[string]any{"name": "X-Text", "description": filler}}
		must.Succeed(t, json.NewEncoder(file).Encode(map[string]any{"server": doc}))
	}
	_, err = file.WriteString("]}")
	must.Succeed(t, errors.Join(err, file.Close()))
	r.RunCommand(t, "", "registry", "import", file.Name())
}

// setStatusAll sends PATCH for all versions. It calls meanwhile before it reads more than the
// beginning of the response, and returns the size of the response and the count at its beginning.
func (r *registry) setStatusAll(t *testing.T, name, status string, meanwhile func()) (size, changed int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch,
		r.s.API+"/v0.1"+fixture.ServerPath(name)+"/status", strings.NewReader(`{"status":"`+status+`"}`))
	must.Succeed(t, err)
	request.Header.Set("Content-Type", "application/json")
	header := r.writer.Bearer()
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	must.Succeed(t, err)
	defer response.Body.Close()
	begin := make([]byte, 64)
	if _, err := io.ReadFull(response.Body, begin); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", response.StatusCode, begin, err)
	}
	if _, err := fmt.Sscanf(string(begin), `{"updatedCount":%d,"servers":[`, &changed); err != nil {
		t.Fatalf("the answer begins with %s: %v", begin, err)
	}
	meanwhile()
	n, err := io.Copy(io.Discard, response.Body)
	must.Succeed(t, err)
	return len(begin) + int(n), changed
}
