package registryjson

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/must"
)

// readURL reads a URL without waiting between attempts. It returns the entries and the waits.
func readURL(t *testing.T, address string) ([]string, []time.Duration) {
	t.Helper()
	var pauses []time.Duration
	c := newClient(http.DefaultTransport)
	c.pause = func(ctx context.Context, d time.Duration) bool {
		pauses = append(pauses, d)
		return ctx.Err() == nil
	}
	first, err := newRemotePart(address, c)
	must.Succeed(t, err)
	return readEntries(t, &Source{parts: []part{first}, size: -1}), pauses
}

func startServer(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func TestFollowsPages(t *testing.T) {
	t.Parallel()
	var requests []string
	base := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.RequestURI())
		page := len(r.URL.Query().Get("cursor"))
		next := ""
		if page < 2 {
			next = fmt.Sprintf(`,"nextCursor":"%s"`, strings.Repeat("+", page+1))
		}
		list, metadata := fmt.Sprintf(`"servers":[{"server":{"page":%d}}]`, page), `"metadata":{"count":1`+next+`}`
		if page == 1 {
			list, metadata = metadata, list // the order of the members does not matter
		}
		fmt.Fprintf(w, `{%s,%s}`, list, metadata)
	})
	got, _ := readURL(t, base+"/v0.1/servers?limit=7")
	for i, line := range got {
		if !strings.HasSuffix(line, fmt.Sprintf(`, record 1 {"page":%d}`, i)) {
			t.Errorf("page %d is %q", i, line)
		}
	}
	want := []string{
		"/v0.1/servers?include_deleted=true&limit=7",
		"/v0.1/servers?cursor=%2B&include_deleted=true&limit=7",
		"/v0.1/servers?cursor=%2B%2B&include_deleted=true&limit=7",
	}
	if len(got) != 3 || !slices.Equal(requests, want) {
		t.Errorf("%d records, requests %q, want %q", len(got), requests, want)
	}
}

func TestFileAtURL(t *testing.T) {
	t.Parallel()
	base := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			t.Errorf("request with query %q", r.URL.RawQuery)
		}
		fmt.Fprint(w, `{"name":"a"}`)
	})
	got, _ := readURL(t, strings.Replace(base, "//", "//ada:secret@", 1)+"/server.json#top")
	if len(got) != 1 || !strings.HasSuffix(got[0], ` {"name":"a"}`) || strings.Contains(got[0], "secret") {
		t.Errorf("got %q", got)
	}
}

func TestDocumentWithMetadata(t *testing.T) {
	t.Parallel()
	base := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name":"a","metadata":{"nextCursor":"x"}}`)
	})
	if got, _ := readURL(t, base+"/v0.1/servers"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestPageLeadsToItself(t *testing.T) {
	t.Parallel()
	base := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"servers":[{"a":1}],"metadata":{"nextCursor":"again"}}`)
	})
	got, _ := readURL(t, base+"/v0/servers")
	if len(got) != 3 || !strings.HasPrefix(got[2], "error ") ||
		!strings.HasSuffix(got[2], "leads to the same page again") {
		t.Errorf("got %q", got)
	}
}

func TestBusyRegistry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		after  string
		fails  int
		want   string
		pauses []time.Duration
	}{
		"too many requests":  {429, "7", 2, `{"a":1}`, []time.Duration{7 * time.Second, 7 * time.Second}},
		"unavailable":        {503, "", 2, `{"a":1}`, []time.Duration{time.Second, 2 * time.Second}},
		"a long Retry-After": {503, "9999", 1, `{"a":1}`, []time.Duration{time.Minute}},
		"unavailable on every attempt": {
			500, "", 99, "the server responded with 500 Internal Server Error", []time.Duration{
				time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			},
		},
		"not found": {404, "", 99, "the server responded with 404 Not Found", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			base := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
				if n++; n <= c.fails {
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(c.status)
					return
				}
				fmt.Fprint(w, `{"a":1}`)
			})
			got, pauses := readURL(t, base)
			if len(got) != 1 || !strings.HasSuffix(got[0], c.want) || !slices.Equal(pauses, c.pauses) {
				t.Errorf("got %q after %v, want %q after %v", got, pauses, c.want, c.pauses)
			}
		})
	}
}

func TestTruncatedResponse(t *testing.T) {
	t.Parallel()
	base := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"servers":[{"a":1},{"b":`)
	})
	got, _ := readURL(t, base)
	if len(got) != 2 || got[1] != "error "+base+": ends in the middle of its JSON" {
		t.Errorf("got %q", got)
	}
}

func TestRedirectLoop(t *testing.T) {
	t.Parallel()
	var base string
	base = startServer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, base, http.StatusFound) })
	if got, _ := readURL(t, base); len(got) != 1 || !strings.HasSuffix(got[0], "redirects more than 5 times") {
		t.Errorf("got %q", got)
	}
}

func TestInvalidURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://", "https:///x", "http://a b/"} {
		if _, err := Open(address, nil); err == nil {
			t.Errorf("Open(%q) returned no error", address)
		}
	}
}
