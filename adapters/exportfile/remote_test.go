package exportfile

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// from reads a URL without waiting between tries, and returns the pauses that
// it would have made.
func from(t *testing.T, address string) ([]string, []time.Duration) {
	t.Helper()
	var pauses []time.Duration
	c := newClient(http.DefaultTransport)
	c.pause = func(ctx context.Context, d time.Duration) bool {
		pauses = append(pauses, d)
		return ctx.Err() == nil
	}
	first, err := newRemote(address, c)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, &Source{parts: []part{first}, size: -1}), pauses
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func TestPages(t *testing.T) {
	t.Parallel()
	var asked []string
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		page := len(r.URL.Query().Get("cursor"))
		next := ""
		if page < 2 {
			next = fmt.Sprintf(`,"nextCursor":"%s"`, strings.Repeat("+", page+1))
		}
		fmt.Fprintf(w, `{"servers":[{"server":{"page":%d}}],"metadata":{"count":1%s}}`, page, next)
	})
	got, _ := from(t, base+"/v0.1/servers?limit=7")
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
	if len(got) != 3 || !slices.Equal(asked, want) {
		t.Errorf("%d records, asked %q, want %q", len(got), asked, want)
	}
}

func TestFileBehindURL(t *testing.T) {
	t.Parallel()
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			t.Errorf("asked with %q", r.URL.RawQuery)
		}
		fmt.Fprint(w, `{"name":"a"}`)
	})
	got, _ := from(t, strings.Replace(base, "//", "//ada:secret@", 1)+"/server.json#top")
	if len(got) != 1 || !strings.HasSuffix(got[0], ` {"name":"a"}`) || strings.Contains(got[0], "secret") {
		t.Errorf("got %q", got)
	}
}

func TestPageLeadsToItself(t *testing.T) {
	t.Parallel()
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"servers":[{"a":1}],"metadata":{"nextCursor":"again"}}`)
	})
	got, _ := from(t, base+"/v0/servers")
	if len(got) != 3 || !strings.HasPrefix(got[2], "error ") || !strings.HasSuffix(got[2], "leads from this page to itself") {
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
		"throttled":     {429, "7", 2, `{"a":1}`, []time.Duration{7 * time.Second, 7 * time.Second}},
		"unavailable":   {503, "", 2, `{"a":1}`, []time.Duration{time.Second, 2 * time.Second}},
		"asks for ages": {503, "9999", 1, `{"a":1}`, []time.Duration{time.Minute}},
		"for good":      {500, "", 99, "answers 500 Internal Server Error", []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}},
		"not found":     {404, "", 99, "answers 404 Not Found", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if n++; n <= c.fails {
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(c.status)
					return
				}
				fmt.Fprint(w, `{"a":1}`)
			})
			got, pauses := from(t, base)
			if len(got) != 1 || !strings.HasSuffix(got[0], c.want) || !slices.Equal(pauses, c.pauses) {
				t.Errorf("got %q after %v, want %q after %v", got, pauses, c.want, c.pauses)
			}
		})
	}
}

func TestAnswerBreaksOff(t *testing.T) {
	t.Parallel()
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"servers":[{"a":1},{"b":`)
	})
	got, _ := from(t, base)
	if len(got) != 2 || got[1] != "error "+base+": ends in the middle of its JSON" {
		t.Errorf("got %q", got)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var base string
	base = serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, base, http.StatusFound) })
	if got, _ := from(t, base); len(got) != 1 || !strings.HasSuffix(got[0], "redirects too often") {
		t.Errorf("got %q", got)
	}
}

func TestNoURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://", "https:///x", "http://a b/"} {
		if _, err := Open(address, nil); err == nil {
			t.Errorf("%q opens", address)
		}
	}
}
