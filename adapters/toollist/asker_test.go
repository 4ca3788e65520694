package toollist

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/remotetools"
	"github.com/tollgate-dev/tollgate/ports/remotetools/remotetoolstest"
)

var thisMachine = Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func serve(t *testing.T, h http.Handler) registry.RemoteURL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return registry.RemoteURL(s.URL + "/mcp")
}

func TestAsker(t *testing.T) {
	remotetoolstest.Run(t, func(t *testing.T) remotetoolstest.Subject {
		return remotetoolstest.Subject{
			Asker: NewAsker(thisMachine), Guarded: NewAsker(Config{}),
			Serve: func(answer func(remotetoolstest.Request) remotetoolstest.Response) registry.RemoteURL {
				return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body) // what is not read is not in it
					a := answer(remotetoolstest.Request{Key: r.Header.Get("X-Api-Key"), Body: string(body)})
					if a.Hangs {
						<-r.Context().Done()
						return
					}
					w.Header().Set("Content-Type", "application/json")
					if a.Location != "" {
						w.Header().Set("Location", a.Location)
					}
					w.WriteHeader(a.Status)
					_, _ = io.WriteString(w, a.Body) // the client notices
				}))
			},
		}
	})
}

// TestSlow checks that a remote that does not answer is said to be slow.
func TestSlow(t *testing.T) {
	a := NewAsker(thisMachine)
	a.timeout = 50 * time.Millisecond
	url := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the client is noticed
		<-r.Context().Done()
	}))
	_, err := a.Ask(t.Context(), remotetools.Question{URL: url})
	if f, _ := fault.As(err); f == nil || f.Code != fault.UpstreamSlow || !strings.Contains(err.Error(), "within 50ms") {
		t.Errorf("Ask = %v", err)
	}
}

// TestNoAddresses checks that errors of connections have no addresses, which may be internal.
func TestNoAddresses(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, says := range map[string]string{
		strings.Replace(closed.URL, "127.0.0.1", "localhost", 1): "it accepts no connection", "https://name.invalid/mcp": "its name cannot be resolved",
	} {
		_, err := NewAsker(thisMachine).Ask(t.Context(), remotetools.Question{URL: registry.RemoteURL(url)})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "::1") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// BenchmarkAsk measures a question, with what the remote does.
func BenchmarkAsk(b *testing.B) {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
		for i := range 20 {
			s.AddTool(&mcp.Tool{Name: fmt.Sprint("tool-", i), Description: strings.Repeat("x", 500), InputSchema: map[string]any{"type": "object"}}, nil)
		}
		return s
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	server := httptest.NewServer(handler)
	defer server.Close()
	a := NewAsker(thisMachine)
	for b.Loop() {
		if _, err := a.Ask(b.Context(), remotetools.Question{URL: registry.RemoteURL(server.URL)}); err != nil {
			b.Fatal(err)
		}
	}
}
