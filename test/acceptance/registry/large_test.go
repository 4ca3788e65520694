package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// checkLarge reads a server whose versions together are larger than the service keeps in memory for
// a response.
func checkLarge(t *testing.T, r *registry) {
	const name, versions = "com.example.large/server", 19
	large := func(version int, filler string) map[string]any {
		doc := fixture.NewServerDocument(name, fmt.Sprintf("1.0.%d", version))
		remote := doc["remotes"].([]any)[0].(map[string]any)
		remote["headers"] = []any{
			map[string]any{"name": "X-Text", "description": strings.Repeat(filler, 300<<10/len(filler))},
		}
		return doc
	}
	docs := make([]map[string]any, versions)
	for i := range docs {
		docs[i] = large(i, "some text, ü ")
		r.write(t, "POST", "/publish", docs[i])
	}
	slices.Reverse(docs)
	all := fixture.ServerPath(name) + "/versions"
	whole := r.list(t, all)
	if len(whole.Servers) != versions || whole.Metadata.NextCursor != nil {
		t.Fatalf("%d versions are listed, want %d", len(whole.Servers), versions)
	}
	for i, got := range whole.Servers {
		if !equalJSON(t, got.Server, docs[i]) || got.Official().IsLatest != (i == 0) {
			t.Errorf("version %d is %v, latest %v", i, got.Server["version"], got.Official().IsLatest)
		}
	}
	tags := r.readLargeTags(t, all, nil)
	if again := r.readLargeTags(t, all, tags); !slices.Equal(again, tags) {
		t.Errorf("the tags %q become %q though nothing changed", tags, again)
	}
	r.write(t, "PUT", fixture.ServerPath(name, "1.0.3"), large(3, "another text, "))
	replaced := r.readLargeTags(t, all, nil)
	r.setStatus(t, name, "1.0.3", "deprecated")
	if deprecated := r.readLargeTags(t, all, nil); tags[0] == replaced[0] || tags[0] == deprecated[0] ||
		replaced[0] == deprecated[0] {
		t.Errorf("the tags %q, %q and %q do not differ after each change", tags, replaced, deprecated)
	}
}

// readLargeTags returns the tags of a response in both content codings. HEAD and GET must return
// the same tags, and a request with a known tag gets 304.
func (r *registry) readLargeTags(t *testing.T, path string, known []string) []string {
	t.Helper()
	var tags []string
	for i, coding := range []string{"identity", "gzip"} {
		for _, method := range []string{"HEAD", "GET"} {
			header, status := []string{"Accept-Encoding", coding}, http.StatusOK
			if method == http.MethodGet && coding == "gzip" {
				header = nil // the client requests gzip by default, and decompresses the response
			}
			if known != nil {
				header, status = append(header, "If-None-Match", known[i]), http.StatusNotModified
			}
			a := apiclient.Call(t, method, r.s.API+"/v0.1"+path, nil, header...).WantStatus(t, status)
			tag := a.Header.Get("Etag")
			if len(tags) == i {
				tags = append(tags, tag)
			}
			if tag == "" || tag != tags[i] {
				t.Errorf("%s by %s has the tag %s, not %s", method, coding, tag, tags[i])
			}
		}
	}
	return tags
}
