package sdktest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// bombBytes is the number of bytes that a hostile registry sends. stallTimeout is the time limit of
// a check with a registry that stops responding.
const (
	bombBytes    = 256 << 20
	stallTimeout = time.Second
)

// Configured returns an environment with private package registries at baseURLs, in the form in
// which the host sets it. Pass it to the function that opens the plugin.
func Configured(baseURLs ...string) func(name string) string {
	type entry struct {
		BaseURL string `json:"baseUrl"`
	}
	var entries []entry
	for _, u := range baseURLs {
		entries = append(entries, entry{u})
	}
	value, _ := json.Marshal(entries) // marshalling strings never fails
	return func(name string) string {
		if name == registryclient.Variable {
			return string(value)
		}
		return ""
	}
}

// PackageRegistry is an ownership plugin under test that connects to a package registry over HTTP.
type PackageRegistry struct {
	// Open must create the plugin as its main function does, from the environment variables that
	// the function returns.
	Open func(environment func(name string) string) (sdk.Ownership, error)
	// Claim must return a claim whose check sends a request to the registry at baseURL.
	Claim func(baseURL string) sdk.Claim
	// ReportsRetryAfter says whether the plugin passes on the delay that a registry requests.
	ReportsRetryAfter bool
}

// outcome is the result of a check that does not confirm the claim.
type outcome string

const (
	refusal   outcome = "a refusal"
	transient outcome = "a transient failure"
	either    outcome = "a refusal or a transient failure"
)

// badResponse is the response of a misbehaving registry to every request.
type badResponse struct {
	answer http.HandlerFunc
	want   outcome
	wait   time.Duration // the delay that a plugin may pass on
}

// requestedWait is the delay that an overloaded registry requests.
const requestedWait = 7 * time.Second

// RunMisbehaviour runs p with registries that are slow, throttled, hostile or broken. A check must
// not confirm the claim, follow a redirect to another host, read without a limit or exceed its
// deadline, and it must report a failure as transient if a later try may succeed.
func RunMisbehaviour(t *testing.T, p PackageRegistry) {
	t.Helper()
	var strayed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strayed.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(elsewhere.Close)
	for name, m := range badResponses(elsewhere.URL) {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(m.answer)
			defer server.Close()
			err := wantFailure(t, p, server.URL, m.want)
			if got := retryDelay(err); p.ReportsRetryAfter && got != m.wait {
				t.Errorf("Check requests a delay of %s, want the registry's %s", got, m.wait)
			}
		})
	}
	t.Run("away", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		_ = wantFailure(t, p, server.URL, transient) // it requests no delay
	})
	t.Run("not allowed", func(t *testing.T) { wantNotAllowed(t, p, elsewhere.URL) })
	if n := strayed.Load(); n != 0 {
		t.Errorf("another host got %d requests, want 0", n)
	}
}

func badResponses(elsewhere string) map[string]badResponse {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(int(requestedWait/time.Second)))
			w.WriteHeader(code)
		}
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, text) // the check shows whether it arrived
		}
	}
	return map[string]badResponse{
		"throttled":                 {status(http.StatusTooManyRequests), transient, requestedWait},
		"broken":                    {status(http.StatusInternalServerError), transient, requestedWait},
		"overloaded":                {status(http.StatusServiceUnavailable), transient, requestedWait},
		"gone for good":             {status(http.StatusGone), refusal, 0},
		"access denied":             {status(http.StatusForbidden), refusal, 0},
		"slow to begin":             {stallAfter(""), transient, 0},
		"slow to end":               {stallAfter(`{"name":`), transient, 0},
		"redirect to another host":  {redirectTo(elsewhere + "/found"), refusal, 0},
		"redirect into the network": {redirectTo("http://169.254.169.254/latest/meta-data"), refusal, 0},
		"redirect to a file":        {redirectTo("file:///etc/passwd"), refusal, 0},
		"redirect in a circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
		}, refusal, 0},
		"oversized":            {sendOversized, refusal, 0},
		"gzip bomb":            {sendGzipBomb, refusal, 0},
		"gzip of nothing":      {sendEmptyGzip, either, 0},
		"no gzip":              {sendInvalidGzip, either, 0},
		"body that breaks off": {sendTruncated, either, 0},
		"no JSON":              {body("<html>sign in to the hotel's network</html>"), either, 0},
		"JSON of another kind": {body(`[[1, "2"], null]`), either, 0},
		"JSON null":            {body("null"), either, 0},
		"empty body":           {body(""), either, 0},
	}
}

// wantFailure checks the claim with the registry at baseURL, fails the test unless the result is
// want, and returns the error.
func wantFailure(t *testing.T, p PackageRegistry, baseURL string, want outcome) error {
	t.Helper()
	plugin, err := p.Open(Configured(baseURL))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*stallTimeout)
	defer cancel()
	if strings.Contains(t.Name(), "slow") {
		ctx, cancel = context.WithTimeout(ctx, stallTimeout)
		defer cancel()
	}
	err = connectPlugin(t, sdk.OwnershipPlugin(plugin), pluginv1.Kind_KIND_OWNERSHIP).check(ctx, p.Claim(baseURL))
	switch {
	case err == nil:
		t.Error("Check confirmed the claim, want an error")
	case want == transient && !isTransient(err), want == refusal && isTransient(err):
		t.Errorf("Check = %v, want %s", err, want)
	}
	return err
}

// wantNotAllowed checks a claim with a base URL that is not configured.
func wantNotAllowed(t *testing.T, p PackageRegistry, baseURL string) {
	plugin, err := p.Open(Configured())
	if err != nil {
		t.Fatal(err)
	}
	err = connectPlugin(t, sdk.OwnershipPlugin(plugin), pluginv1.Kind_KIND_OWNERSHIP).check(t.Context(),
		p.Claim(baseURL))
	if err == nil || isTransient(err) {
		t.Errorf("Check = %v, want a refusal", err)
	}
}

// stallAfter sends the beginning of a body and then nothing until the client disconnects.
func stallAfter(beginning string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if beginning != "" {
			_, _ = io.WriteString(w, beginning)       // the client sees what arrived
			_ = http.NewResponseController(w).Flush() // as above
		}
		<-r.Context().Done()
	}
}

func redirectTo(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// sendOversized sends a body that is too large, until the client disconnects.
func sendOversized(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"name":"`)    // the client disconnects at its limit
	_, _ = io.CopyN(w, letters{}, bombBytes) // as above
}

func sendGzipBomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // BestSpeed is a valid level
	_, _ = io.WriteString(zipped, `{"name":"`)          // the client disconnects at its limit
	_, _ = io.CopyN(zipped, letters{}, bombBytes)       // as above
	_ = zipped.Close()                                  // as above
}

// sendEmptyGzip sends many compressed bytes that decompress to nothing, so that only a limit on the
// compressed size stops the client.
func sendEmptyGzip(w http.ResponseWriter, r *http.Request) {
	var member bytes.Buffer
	zipped := gzip.NewWriter(&member)
	zipped.Extra = make([]byte, 1<<15) // in the header, which a reader skips
	_ = zipped.Close()                 // writing to a buffer never fails
	w.Header().Set("Content-Encoding", "gzip")
	for sent := 0; sent < bombBytes && r.Context().Err() == nil; sent += member.Len() {
		_, _ = w.Write(member.Bytes()) // the client disconnects at its limit
	}
}

func sendInvalidGzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "{}") // the client sees what arrived
}

func sendTruncated(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"name":"x"`) // the client sees what arrived
}

// letters is an endless reader of one letter.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
