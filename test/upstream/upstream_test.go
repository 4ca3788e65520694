package upstream_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// list returns the names on one page and its cursor.
func list(t *testing.T, up *upstream.Server, query string) (names []string, cursor string) {
	t.Helper()
	resp, err := http.Get(up.URL + "/v0.1/servers?" + query)
	must.Succeed(t, err)
	defer resp.Body.Close()
	var page struct {
		Servers []struct {
			Server struct{ Name, Version string }
		}
		Metadata struct{ NextCursor string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", resp.Status, err)
	}
	for _, s := range page.Servers {
		names = append(names, s.Server.Name+" "+s.Server.Version)
	}
	return names, page.Metadata.NextCursor
}

func TestListsAsARegistryDoes(t *testing.T) {
	t.Parallel()
	record := func(name, version, status string, updated time.Duration) upstream.Record {
		return upstream.Record{
			Document: upstream.Document(name, version, "A server."), Status: status,
			UpdatedAt: upstream.Epoch().Add(updated),
		}
	}
	up := upstream.Start(t, record("a/a", "1", "", 0), record("a/b", "1", "deleted", time.Hour),
		record("a/c", "1", "", 2*time.Hour))
	up.Put(record("a/a", "1", "deprecated", time.Minute), record("a/d", "1", "", 0))
	up.Forget("a/d")
	for query, want := range map[string][]string{
		"":                     {"a/a 1", "a/c 1"},
		"include_deleted=true": {"a/a 1", "a/b 1", "a/c 1"},
		"include_deleted=true&updated_since=2026-01-02T03:04:05Z":                  {"a/a 1", "a/b 1", "a/c 1"},
		"include_deleted=true&updated_since=" + "2026-01-02T04:04:05Z":             {"a/c 1"},
		"include_deleted=true&limit=2":                                             {"a/a 1", "a/b 1"},
		"include_deleted=true&limit=2&cursor=page-2":                               {"a/c 1"},
		"include_deleted=true&updated_since=2027-01-01T00:00:00Z&cursor=&limit=50": nil,
	} {
		if got, _ := list(t, up, query); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	if _, cursor := list(t, up, "limit=1"); cursor != "page-2" {
		t.Errorf("nextCursor is %q", cursor)
	}
	if _, cursor := list(t, up, "limit=1&cursor=page-2"); cursor != "" {
		t.Errorf("nextCursor of the last page is %q", cursor)
	}
}
