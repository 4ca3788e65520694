package registryjson

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newDocumentServer returns a server with a document, and with what is none.
func newDocumentServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	text := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	}
	text("/bare", `{"name":"a"}`)
	text("/wrapped", `{"server":{"name":"a"},"_meta":{}}`)
	text("/largest", `{"name":"`+strings.Repeat("a", maxDocumentBytes-len(`{"name":""}`))+`"}`)
	text("/huge", `{"name":"`+strings.Repeat("a", maxDocumentBytes)+`"}`)
	text("/html", "<html>")
	text("/list", "[]")
	text("/null", "null")
	mux.HandleFunc("/hangs", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.Handle("/inside", http.RedirectHandler(s.URL+"/bare", http.StatusFound))
	return s
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	s := newDocumentServer(t)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	allowed := newDocumentSource(publicdial.Config{Timeout: maxDial, Allowed: loopback})
	allowed.public.maxPage = time.Second
	for _, c := range []struct {
		path   string
		chosen bool
		want   string
	}{
		{"/bare", false, `{"name":"a"}`},
		{"/bare", true, `{"name":"a"}`},
		{"/wrapped", false, `{"name":"a"}`},
		{"/inside", false, `{"name":"a"}`},
		{"/inside", true, "fault: the address, or one that it redirects to, is not public, or its name cannot be resolved"},
		{"/huge", false, "fault: the document is larger than 1048576 bytes"},
		{"/html", false, "fault: the response is not the JSON of a server"},
		{"/list", false, "fault: the response is not the JSON of a server"},
		{"/null", false, "fault: the response is not the JSON of a server"},
		{"/hangs", false, "fault: the response takes longer than 1s"},
		{"/missing", false, "fault: the server responded with 404 Not Found"},
	} {
		got, err := allowed.Read(t.Context(), recordsource.DocumentRequest{Address: s.URL + c.path, Chosen: c.chosen})
		if fault.Is(err, fault.Unavailable) {
			got = []byte("fault: " + fault.PublicMessage(err))
		} else if err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if string(got) != c.want {
			t.Errorf("%s, chosen %t: %.100s, want %s", c.path, c.chosen, got, c.want)
		}
	}
	if got, err := allowed.Read(t.Context(), recordsource.DocumentRequest{Address: s.URL + "/largest"}); err != nil ||
		len(got) != maxDocumentBytes {
		t.Errorf("the largest document: %d bytes, %v", len(got), err)
	}
	_, err := NewDocuments().Read(t.Context(), recordsource.DocumentRequest{Address: s.URL + "/bare"})
	if want := "the address, or one that it redirects to, is not public, or its name cannot be resolved"; fault.PublicMessage(err) != want {
		t.Errorf("a loopback address: %v", err)
	}
	_, unknown := NewDocuments().Read(t.Context(), recordsource.DocumentRequest{Address: "http://registry.invalid/server.json"})
	if fault.PublicMessage(unknown) != fault.PublicMessage(err) {
		t.Errorf("a name that does not exist is not answered as an address that is not public: %v", unknown)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := allowed.Read(ended, recordsource.DocumentRequest{Address: s.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestDocumentsThroughAProxy: with a proxy, addresses that people choose are asked of it, if they are
// public here.
func TestDocumentsThroughAProxy(t *testing.T) {
	t.Parallel()
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if r.URL.Path == "/inside" {
			http.Redirect(w, r, "http://10.1.2.3/server.json", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(`{"name":"a"}`))
	}))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	must.Succeed(t, err)
	guard := newPublicGuard(publicdial.Config{Timeout: maxDial})
	guard.proxyOf = http.ProxyURL(address)
	s := newDocumentSource(publicdial.Config{})
	s.public = newClient(guard)
	s.public.tries = 1
	read := func(address string) (string, error) {
		got, err := s.Read(t.Context(), recordsource.DocumentRequest{Address: address})
		return string(got), err
	}
	const public = "http://93.184.216.34/server.json"
	if got, err := read(public); got != `{"name":"a"}` || err != nil || len(asked) != 1 || asked[0] != public {
		t.Errorf("%s: %q, %v; the proxy was asked for %v", public, got, err, asked)
	}
	asked = nil
	for _, inner := range []string{"http://10.1.2.3/a", "http://[::1]/a", "http://registry.internal/a", "http://93.184.216.34/inside"} {
		if _, err := read(inner); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "is not public") {
			t.Errorf("%s: %v", inner, err)
		}
	}
	if len(asked) != 1 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}
