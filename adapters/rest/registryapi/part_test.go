package registryapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

var now = time.Date(2027, 1, 15, 8, 0, 0, 123456000, time.UTC)

// servePart starts a listener that has only one part, and returns its URL.
func servePart(t *testing.T, p rest.Part) string {
	t.Helper()
	return resttest.Serve(t, rest.New(resttest.Config(), rest.Ports{
		Parts: []rest.Part{p}, Throttle: unlimited{}, Clock: clocktest.NewManual(now), Log: discardLog(),
	}))
}

// expectUncached sends a request with a token, and checks the response: status, body, its type, and
// that no cache may keep it.
func expectUncached(t *testing.T, method, url, sent string, status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(sent))
	must.Succeed(t, err)
	r.Header.Set("Authorization", "Bearer t.o.k")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	if response.StatusCode != status || string(text) != body {
		t.Errorf("%s %s %.80s: %d %s, want %d %s", method, url, sent, response.StatusCode, text, status, body)
	}
	if body == "" {
		return
	}
	if got := response.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s %s %.80s: Cache-Control is %q", method, url, sent, got)
	}
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s %s %.80s: Content-Type is %q", method, url, sent, got)
	}
}
