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

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

// bomb is how many bytes a misbehaving registry is ready to send, and impatience how long a check of a silent one may take.
const (
	bomb       = 256 << 20
	impatience = time.Second
)

// Configured returns the environment of a plugin whose private package registries have the base URLs, as the host sets it.
func Configured(baseURLs ...string) func(name string) string {
	type entry struct {
		BaseURL string `json:"baseUrl"`
	}
	var entries []entry
	for _, u := range baseURLs {
		entries = append(entries, entry{u})
	}
	value, _ := json.Marshal(entries) // strings always marshal
	return func(name string) string {
		if name == registryclient.Variable {
			return string(value)
		}
		return ""
	}
}

// PackageRegistry is an ownership plugin that asks a package registry over HTTP.
type PackageRegistry struct {
	// Open returns the plugin as its main makes it, with the environment looked up by the function.
	Open func(environment func(name string) string) (sdk.Ownership, error)
	// Claim returns a claim whose check asks the registry at the base URL.
	Claim func(baseURL string) sdk.Claim
	// TellsWait says that the plugin passes on how long a registry asks to wait.
	TellsWait bool
}

// misbehaviour is a way for a registry to answer everything.
type misbehaviour struct {
	answer http.HandlerFunc
	want   fault.Kind    // of the check; Internal stands for any failure
	wait   time.Duration // that a plugin may pass on
}

// pause is what a registry that has no time asks for.
const pause = 7 * time.Second

// RunMisbehaviour checks p before registries that are slow, throttled, hostile or broken: no check may take such an answer for a
// claim, follow it to another host, read it without bound or outlast its deadline, and it tells what a later try may mend.
func RunMisbehaviour(t *testing.T, p PackageRegistry) {
	t.Helper()
	var strayed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strayed.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(elsewhere.Close)
	for name, m := range misbehaviours(elsewhere.URL) {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(m.answer)
			defer server.Close()
			err := fails(t, p, server.URL, m.want)
			if f, ok := fault.As(err); ok && p.TellsWait && f.RetryAfter != m.wait {
				t.Errorf("Check asks to wait %s, want the %s of the registry", f.RetryAfter, m.wait)
			}
		})
	}
	t.Run("away", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		_ = fails(t, p, server.URL, fault.Unavailable) // it asks for no wait
	})
	t.Run("not allowed", func(t *testing.T) { notAllowed(t, p, elsewhere.URL) })
	if n := strayed.Load(); n != 0 {
		t.Errorf("another host was asked %d times, want never", n)
	}
}

func misbehaviours(elsewhere string) map[string]misbehaviour {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(int(pause/time.Second)))
			w.WriteHeader(code)
		}
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, text) // whether it arrives is what the check shows
		}
	}
	return map[string]misbehaviour{
		"throttled":                 {status(http.StatusTooManyRequests), fault.Unavailable, pause},
		"broken":                    {status(http.StatusInternalServerError), fault.Unavailable, pause},
		"overloaded":                {status(http.StatusServiceUnavailable), fault.Unavailable, pause},
		"gone for good":             {status(http.StatusGone), fault.Invalid, 0},
		"access denied":             {status(http.StatusForbidden), fault.Invalid, 0},
		"slow to begin":             {silent(""), fault.Unavailable, 0},
		"slow to end":               {silent(`{"name":`), fault.Unavailable, 0},
		"redirect to another host":  {redirect(elsewhere + "/found"), fault.Invalid, 0},
		"redirect into the network": {redirect("http://169.254.169.254/latest/meta-data"), fault.Invalid, 0},
		"redirect to a file":        {redirect("file:///etc/passwd"), fault.Invalid, 0},
		"redirect in a circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
		}, fault.Invalid, 0},
		"oversized":            {oversized, fault.Invalid, 0},
		"gzip bomb":            {gzipBomb, fault.Invalid, 0},
		"gzip of nothing":      {gzipOfNothing, fault.Internal, 0},
		"no gzip":              {garbled, fault.Internal, 0},
		"body that breaks off": {truncated, fault.Internal, 0},
		"no JSON":              {body("<html>sign in to the hotel's network</html>"), fault.Internal, 0},
		"JSON of another kind": {body(`[[1, "2"], null]`), fault.Internal, 0},
		"JSON null":            {body("null"), fault.Internal, 0},
		"empty body":           {body(""), fault.Internal, 0},
	}
}

// fails checks the claim at baseURL and wants the failure of the kind, which it returns.
func fails(t *testing.T, p PackageRegistry, baseURL string, want fault.Kind) error {
	t.Helper()
	plugin, err := p.Open(Configured(baseURL))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*impatience)
	defer cancel()
	if strings.Contains(t.Name(), "slow") {
		ctx, cancel = context.WithTimeout(ctx, impatience)
		defer cancel()
	}
	conn, description := connect(t, sdk.OwnershipPlugin(plugin))
	err = pluginclient.Check(ctx, conn, description, ownership.Claim(p.Claim(baseURL)))
	switch kind := fault.KindOf(err); {
	case err == nil:
		t.Error("Check found the claim borne out")
	case want == fault.Internal && (kind == fault.Invalid || kind == fault.Unavailable):
	case kind != want:
		t.Errorf("Check = %v, of kind %s, want %s", err, kind, want)
	}
	return err
}

// notAllowed checks a claim at a base URL that nobody configured.
func notAllowed(t *testing.T, p PackageRegistry, baseURL string) {
	plugin, err := p.Open(Configured())
	if err != nil {
		t.Fatal(err)
	}
	conn, description := connect(t, sdk.OwnershipPlugin(plugin))
	err = pluginclient.Check(t.Context(), conn, description, ownership.Claim(p.Claim(baseURL)))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("Check = %v, want a refusal", err)
	}
}

// silent answers with the beginning of a body and then with nothing more, until the client is gone.
func silent(beginning string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if beginning != "" {
			_, _ = io.WriteString(w, beginning)       // the client sees what arrived
			_ = http.NewResponseController(w).Flush() // as above
		}
		<-r.Context().Done()
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// oversized sends until the client hangs up.
func oversized(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"name":"`) // the client hangs up at its bound
	_, _ = io.CopyN(w, letters{}, bomb)   // as above
}

func gzipBomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a level there is
	_, _ = io.WriteString(zipped, `{"name":"`)          // the client hangs up at its bound
	_, _ = io.CopyN(zipped, letters{}, bomb)            // as above
	_ = zipped.Close()                                  // as above
}

// gzipOfNothing sends compressed bytes that hold none: only a bound on what arrives stops it.
func gzipOfNothing(w http.ResponseWriter, r *http.Request) {
	var member bytes.Buffer
	zipped := gzip.NewWriter(&member)
	zipped.Extra = make([]byte, 1<<15) // of the header, which a reader passes over
	_ = zipped.Close()                 // into a buffer
	w.Header().Set("Content-Encoding", "gzip")
	for sent := 0; sent < bomb && r.Context().Err() == nil; sent += member.Len() {
		_, _ = w.Write(member.Bytes()) // the client hangs up at its bound
	}
}

func garbled(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "{}") // the client sees what arrived
}

func truncated(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"name":"x"`) // the client sees what arrived
}

// letters is an endless text.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
