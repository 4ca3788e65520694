package registryclient_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// requestLog records the requests of a server.
type requestLog struct {
	mu    sync.Mutex
	lines []string
}

func (s *requestLog) handler(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.lines = append(s.lines, r.URL.EscapedPath()+" "+r.Header.Get("Authorization"))
		s.mu.Unlock()
		next(w, r)
	}
}

func (s *requestLog) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// openBase returns the registry at path on the server, with credentials in JSON.
func openBase(t *testing.T, server *httptest.Server, path, credentials string) *registryclient.Base {
	t.Helper()
	value := fmt.Sprintf(`[{"baseUrl":%q%s}]`, server.URL+path, credentials)
	client, err := registryclient.Open(registryclient.Config{Environment: environmentWith(value)})
	if err != nil {
		t.Fatal(err)
	}
	base, err := client.Base(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// environmentWith returns an environment with only the registries.
func environmentWith(value string) func(string) string {
	return func(name string) string { return map[string]string{registryclient.Variable: value}[name] }
}

func startServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestCredentialsStayBelowTheirBase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ base, credentials, path, want string }{
		"token":                 {"/npm", `,"token":"t"`, "a%2fb/1", "/npm/a%2fb/1 Bearer t"},
		"password":              {"/npm", `,"username":"u","password":"p"`, "/x", "/npm/x Basic dTpw"},
		"no credentials":        {"/npm", ``, "x", "/npm/x "},
		"redirect inside":       {"/npm", `,"token":"t"`, "in", "/npm/in Bearer t\n/npm/x Bearer t"},
		"redirect outside":      {"/npm", `,"token":"t"`, "out", "/npm/out Bearer t\n/other/x "},
		"redirect to a sibling": {"/npm", `,"token":"t"`, "sibling", "/npm/sibling Bearer t\n/npm-x/x "},
		"absolute, inside":      {"/npm", `,"token":"t"`, "SERVER/npm/x", "/npm/x Bearer t"},
		"absolute, outside":     {"/npm", `,"token":"t"`, "SERVER/other/x", "/other/x "},
		"index":                 {"/v3/index.json", `,"token":"t"`, "SERVER/v3/x", "/v3/x Bearer t"},
		"whole host":            {"", `,"token":"t"`, "out", "/out Bearer t\n/other/x Bearer t"},
	} {
		var s requestLog
		server := startServer(t, s.handler(func(w http.ResponseWriter, r *http.Request) {
			to := map[string]string{
				"in": "/npm/x", "out": "/other/x", "sibling": "/npm-x/x",
			}[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
			if to != "" {
				http.Redirect(w, r, to, http.StatusFound)
			}
		}))
		_, err := openBase(t, server, c.base, c.credentials).Get(t.Context(),
			strings.Replace(c.path, "SERVER", server.URL, 1), registryclient.Options{})
		if err != nil || s.all() != c.want {
			t.Errorf("%s: %v, asked %q, want %q", name, err, s.all(), c.want)
		}
	}
}

func TestRawToken(t *testing.T) {
	t.Parallel()
	var s requestLog
	server := startServer(t, s.handler(func(http.ResponseWriter, *http.Request) {}))
	client, err := registryclient.Open(registryclient.Config{
		RawToken: true, Environment: environmentWith(`[{"baseUrl":"` + server.URL + `","token":"t"}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	base, err := client.Base(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := base.Get(t.Context(), "x", registryclient.Options{}); err != nil || s.all() != "/x t" {
		t.Errorf("%v, asked %q", err, s.all())
	}
}

func TestPathsThatLeave(t *testing.T) {
	t.Parallel()
	var s requestLog
	server := startServer(t, s.handler(func(http.ResponseWriter, *http.Request) {}))
	other := startServer(t, s.handler(func(http.ResponseWriter, *http.Request) {}))
	base := openBase(t, server, "/npm", `,"token":"t"`)
	for _, path := range []string{
		"../x", "a/../../x", "a/%2e%2e/x", "a%2f..%2fx", "a%252f%252e%252e%252fx", "./x", "a\\..\\x", "a%5c..", "%00",
		"a\nb", "%zz",
		other.URL + "/npm/x", "https://" + strings.TrimPrefix(server.URL, "http://") + "/npm/x",
		"http://u@" + strings.TrimPrefix(server.URL, "http://") + "/npm/x",
	} {
		if _, err := base.Get(t.Context(), path, registryclient.Options{}); !registryclient.Is(err,
			registryclient.ForbiddenURL) {
			t.Errorf("Get(%q) = %v, want ForbiddenURL", path, err)
		}
	}
	if s.all() != "" {
		t.Errorf("the servers got the requests %q", s.all())
	}
}

// TestAddressIsCheckedWhereItIsDialled uses names and addresses that lead to this machine, as after
// DNS rebinding.
func TestAddressIsCheckedWhereItIsDialled(t *testing.T) {
	t.Parallel()
	var s requestLog
	server := httptest.NewTLSServer(s.handler(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	for _, host := range []string{
		"localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "0.0.0.0",
	} {
		raw := "https://" + host + ":" + port
		client, err := registryclient.Open(registryclient.Config{Defaults: []string{raw}})
		if err != nil {
			t.Fatal(err)
		}
		base, err := client.Base("")
		if err != nil {
			t.Fatal(err)
		}
		_, err = base.Get(t.Context(), "x", registryclient.Options{})
		if !registryclient.Is(err, registryclient.ForbiddenAddress) {
			t.Errorf("%s: Get = %v, want ForbiddenAddress", host, err)
		}
		file, err := client.At(raw + "/file")
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, raw+"/file", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := file.Transport(1).RoundTrip(request)
		if err == nil {
			_ = response.Body.Close() // there should be no response
		}
		if !registryclient.Is(err, registryclient.ForbiddenAddress) {
			t.Errorf("%s: RoundTrip = %v, want ForbiddenAddress", host, err)
		}
	}
	if s.all() != "" {
		t.Errorf("the server got the requests %q", s.all())
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	t.Parallel()
	var s requestLog
	server := httptest.NewUnstartedServer(s.handler(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake fails
	server.StartTLS()
	t.Cleanup(server.Close)
	_, err := openBase(t, server, "", `,"token":"t"`).Get(t.Context(), "x", registryclient.Options{})
	if !registryclient.Is(err, registryclient.Unreachable) || !strings.Contains(err.Error(), "certificate") ||
		s.all() != "" {
		t.Errorf("Get = %v, asked %q, want an error about the certificate", err, s.all())
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for status, c := range map[int]struct {
		reason    registryclient.Reason
		transient bool
	}{
		404: {registryclient.NotFound, false}, 410: {registryclient.NotFound, false}, 451: {
			registryclient.NotFound, false,
		},
		401: {registryclient.Denied, false}, 402: {registryclient.Denied, false}, 403: {registryclient.Denied, false},
		407: {registryclient.Denied, false},
		408: {registryclient.Throttled, true}, 425: {registryclient.Throttled, true}, 429: {
			registryclient.Throttled, true,
		},
		500: {registryclient.ServerError, true}, 502: {registryclient.ServerError, true}, 503: {
			registryclient.ServerError, true,
		}, 599: {registryclient.ServerError, true},
		400: {registryclient.Unexpected, false}, 405: {registryclient.Unexpected, false}, 204: {
			registryclient.Unexpected, true,
		}, 304: {registryclient.Unexpected, true},
	} {
		server := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(status)
		})
		base := openBase(t, server, "", "")
		_, err := base.Get(t.Context(), "x", registryclient.Options{})
		var e *registryclient.Error
		if !errors.As(err, &e) || e.Reason != c.reason || e.Status != status || e.RetryAfter != 30*time.Second ||
			e.Transient() != c.transient {
			t.Errorf("%d: Get = %#v, want reason %d, transient %t", status, err, c.reason, c.transient)
		}
		if verdict := registryclient.Verdict(err); verdict == nil || errors.Is(verdict, err) != c.transient {
			t.Errorf("%d: Verdict = %v", status, verdict)
		}
		there, err := base.Exists(t.Context(), "x", registryclient.Options{})
		if there || (err == nil) != (c.reason == registryclient.NotFound) {
			t.Errorf("%d: Exists = %t, %v", status, there, err)
		}
	}
	if registryclient.Verdict(nil) != nil {
		t.Error("no error has a verdict")
	}
	refusal := sdk.Refuse("x")
	if got := registryclient.Verdict(refusal); !errors.Is(got, refusal) {
		t.Errorf("Verdict of a refusal = %v", got)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zipped bool
		length int
		reason registryclient.Reason
	}{
		"at the bound": {length: 100}, "over the bound": {length: 101, reason: registryclient.TooLarge},
		"zipped, at the bound": {zipped: true, length: 100}, "zipped, over the bound": {
			zipped: true, length: 101, reason: registryclient.TooLarge,
		},
	} {
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			var body io.Writer = w
			if c.zipped && r.Header.Get("Accept-Encoding") == "gzip" {
				w.Header().Set("Content-Encoding", "gzip")
				zipped := gzip.NewWriter(w)
				defer func() { _ = zipped.Close() }() // the client shows what arrived
				body = zipped
			}
			_, _ = io.WriteString(body, strings.Repeat("a", c.length)) // as above
		})
		body, err := openBase(t, server, "", "").Get(t.Context(), "x", registryclient.Options{MaxBytes: 100})
		switch {
		case c.reason != 0 && !registryclient.Is(err, c.reason):
			t.Errorf("%s: Get = %v, want reason %d", name, err, c.reason)
		case c.reason == 0 && (err != nil || len(body) != c.length):
			t.Errorf("%s: Get = %d bytes, %v", name, len(body), err)
		}
	}
}

func TestFetchReturnsTheReadersError(t *testing.T) {
	t.Parallel()
	// the client shows it
	server := startServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") })
	mine := errors.New("mine")
	err := openBase(t, server, "", "").Fetch(t.Context(), "x", registryclient.Options{}, func(r io.Reader) error {
		if text, err := io.ReadAll(r); err != nil || string(text) != "abc" {
			t.Errorf("read %q, %v", text, err)
		}
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("Fetch = %v", err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	server := startServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	base := openBase(t, server, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := base.Get(ctx, "x", registryclient.Options{}); !errors.Is(err, context.Canceled) ||
		!registryclient.Is(err, registryclient.Unreachable) {
		t.Errorf("cancelled: Get = %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := base.Get(ctx, "x", registryclient.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: Get = %v", err)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	start := time.Now()
	ctx, cancel := registryclient.Within(t.Context())
	defer cancel()
	if d, ok := ctx.Deadline(); !ok || d.Before(start.Add(registryclient.Timeout)) ||
		d.After(time.Now().Add(registryclient.Timeout)) {
		t.Errorf("deadline %v after %v", d, start)
	}
	outer, cancel := context.WithDeadline(t.Context(), start.Add(registryclient.Timeout))
	defer cancel()
	ctx, cancel = registryclient.Within(outer)
	defer cancel()
	if d, ok := ctx.Deadline(); !ok || !d.Before(start.Add(registryclient.Timeout)) {
		t.Errorf("deadline %v is not before that of the host", d)
	}
}

func TestTransport(t *testing.T) {
	t.Parallel()
	var s requestLog
	// the client shows it
	server := startServer(t,
		s.handler(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abcdef") }))
	base := openBase(t, server, "", `,"token":"t"`)
	ask := func(address string, most int64, also ...string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		response, err := base.Transport(most, also...).RoundTrip(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }() // read whole
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if text, err := ask(server.URL+"/x", 6); err != nil || text != "abcdef" || s.all() != "/x " {
		t.Errorf("own host: %q, %v, asked %q", text, err, s.all())
	}
	if _, err := ask(server.URL+"/x", 5); !registryclient.Is(err, registryclient.TooLarge) {
		t.Errorf("over the bound: %v", err)
	}
	if _, err := ask("https://elsewhere.example/x", 6, "other.example"); !registryclient.Is(err,
		registryclient.ForbiddenURL) {
		t.Errorf("another host: %v", err)
	}
	if _, err := ask("http://localhost/x", 6, "localhost"); !registryclient.Is(err, registryclient.ForbiddenURL) {
		t.Errorf("named host in the clear: %v", err)
	}
	if _, err := ask("https://localhost/x", 6, "localhost"); !registryclient.Is(err, registryclient.ForbiddenAddress) {
		t.Errorf("named host that is not public: %v", err)
	}
}

func TestRedirectsThatLeave(t *testing.T) {
	t.Parallel()
	var s requestLog
	other := startServer(t, s.handler(func(http.ResponseWriter, *http.Request) {}))
	for _, to := range []string{
		other.URL + "/npm/x", "http://169.254.169.254/", "https://HOST/npm/x", "http://u:p@HOST/npm/x",
		"http://127.0.0.1.example/", "//elsewhere.example/x",
		"http://HOST/npm/%2e%2e/x", "file:///etc/passwd", "/npm/circle",
	} {
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", strings.Replace(to, "HOST", r.Host, 1))
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, err := openBase(t, server, "/npm", `,"token":"t"`).Get(t.Context(), "circle", registryclient.Options{})
		if !registryclient.Is(err, registryclient.ForbiddenRedirect) {
			t.Errorf("redirect to %q: Get = %v, want ForbiddenRedirect", to, err)
		}
	}
	if s.all() != "" {
		t.Errorf("another host got the requests %q", s.all())
	}
}
