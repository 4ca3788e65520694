package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// toolServer is a server of the go-sdk with one tool, whose description a test changes.
type toolServer struct {
	url         string
	description atomic.Pointer[func() string]
	wrong       atomic.Pointer[http.HandlerFunc]

	mu       sync.Mutex
	keys     []string // what each request had as X-Api-Key
	sessions int      // that have begun
	open     int      // requests in progress
	most     int      // at once
}

func newToolServer(t *testing.T, description string) *toolServer {
	t.Helper()
	s := new(toolServer)
	s.shows(description)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		text := (*s.description.Load())()
		one := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
		one.AddTool(&mcp.Tool{Name: "forecast", Description: text, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		return one
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.begin(r)()
		if wrong := s.wrong.Load(); wrong != nil {
			(*wrong)(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/mcp"
	return s
}

// shows makes the server show a description.
func (s *toolServer) shows(description string) { s.showsBy(func() string { return description }) }

// showsBy makes the server show what a function returns for each request.
func (s *toolServer) showsBy(description func() string) { s.description.Store(&description) }

// begin notes a request, and returns what notes its end.
func (s *toolServer) begin(r *http.Request) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body) // what is not read is not in it
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if strings.Contains(string(body), "server/discover") { // with which the client begins
		s.sessions++
	}
	s.keys = append(s.keys, r.Header.Get("X-Api-Key"))
	s.open++
	s.most = max(s.most, s.open)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}
}

// count returns how many questions the server got.
func (s *toolServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// seen returns the different keys of requests, and forgets them.
func (s *toolServer) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.keys, " ")
	s.keys = nil
	return all
}

// breaks makes the server answer with a handler; nil mends it.
func (s *toolServer) breaks(h http.HandlerFunc) {
	if h == nil {
		s.wrong.Store(nil)
		return
	}
	s.wrong.Store(&h)
}

// publishAt publishes a version with a remote.
func (s *site) publishAt(t *testing.T, name, version, url string) {
	t.Helper()
	d := fixture.NewServerDocument(name, version)
	d["remotes"] = []any{map[string]any{"type": "streamable-http", "url": url}}
	s.call(t, "POST", "/v0.1/publish", d, s.ada.Bearer()...).WantStatus(t, http.StatusOK)
}

func askPath(version string) string { return toolsPath(version) + "/ask" }

// shown returns the states and descriptions of lists of a version, as somebody reads them.
func (s *site) shown(t *testing.T, version string, header ...string) string {
	t.Helper()
	var body struct {
		Lists []struct {
			State, Error string
			Tools        []struct{ Description string }
		}
	}
	s.call(t, "GET", toolsPath(version), nil, header...).WantStatus(t, http.StatusOK).Decode(t, &body)
	var parts []string
	for _, l := range body.Lists {
		text := l.Error
		if len(l.Tools) > 0 {
			text = l.Tools[0].Description
		}
		parts = append(parts, l.State+" "+text)
	}
	return strings.Join(parts, ", ")
}

// awaits waits until everybody reads lists of a version.
func (s *site) awaits(t *testing.T, version, want string) {
	t.Helper()
	got := ""
	await.Until(t, fmt.Sprintf("lists %q of %s", want, version), func() bool {
		got = s.shown(t, version)
		return got == want
	})
}
