package toollist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/adapters/toollist"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/test/must"
)

// asServer is the variable with which the program of the tests is a package.
const asServer = "TOOLLIST_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(asServer) {
	case "lists":
		_ = newServer(3).Run(context.Background(), &mcp.StdioTransport{}) // it ends with its input
	case "silent":
		_, _ = os.Stdin.Read(make([]byte, 1)) // the first request
		select {}
	case "starts":
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{asServer + "=stubborn", "LISTENER=" + os.Getenv("LISTENER")}
		_ = cmd.Run() // it is killed
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		c, err := net.Dial("tcp", os.Getenv("LISTENER"))
		if err == nil {
			_, _ = c.Read(make([]byte, 1)) // nothing comes
		}
	case "ends":
		fmt.Fprintln(os.Stderr, "a secret")
	default:
		os.Exit(m.Run())
	}
}

// newServer returns a server with tools, one on a page, a prompt and a resource template.
func newServer(count int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, &mcp.ServerOptions{PageSize: 1, Instructions: "Be brief"})
	for i := range count {
		s.AddTool(&mcp.Tool{
			Name: fmt.Sprint("tool-", i), InputSchema: json.RawMessage(`{"type":"object"}`),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, nil)
	}
	s.AddPrompt(&mcp.Prompt{Name: "ask"}, nil)
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "file", URITemplate: "file:///{path}"}, nil)
	return s
}

// want is the list of newServer(3).
const want = `{"instructions":"Be brief","prompts":[{"name":"ask"}],"resourceTemplates":[{"name":"file"}],"tools":[` +
	`{"annotations":{"idempotentHint":false,"readOnlyHint":true},"inputSchema":{"type":"object"},"name":"tool-0"},` +
	`{"annotations":{"idempotentHint":false,"readOnlyHint":true},"inputSchema":{"type":"object"},"name":"tool-1"},` +
	`{"annotations":{"idempotentHint":false,"readOnlyHint":true},"inputSchema":{"type":"object"},"name":"tool-2"}]}`

// read reads the list of a handler, with a header.
func read(t *testing.T, h http.Handler, timeout time.Duration) (tools.List, error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return toollist.ReadRemote(t.Context(), toollist.Remote{URL: s.URL, Header: map[string]string{"X-Api-Key": "sesame"}, Timeout: timeout})
}

// withKey admits requests with the header that read sends.
func withKey(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestRead checks the list of a server over each transport: as the server writes it, with all pages.
func TestRead(t *testing.T) {
	get := func(*http.Request) *mcp.Server { return newServer(3) }
	shared := newServer(3)
	for name, h := range map[string]http.Handler{
		"streamable HTTP": mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shared }, nil),
		"as JSON":         mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
		"events":          mcp.NewSSEHandler(get, nil),
	} {
		list, err := read(t, withKey(h), toollist.RemoteTimeout)
		if err != nil || string(list.Canonical()) != want {
			t.Errorf("by %s: %s, %v", name, list.Canonical(), err)
		}
	}
	list, err := toollist.ReadProgram(t.Context(), program("lists", toollist.PackageTimeout))
	if err != nil || string(list.Canonical()) != want {
		t.Errorf("of a package: %s, %v", list.Canonical(), err)
	}
}

// program is this program as a package.
func program(as string, timeout time.Duration) toollist.Program {
	return toollist.Program{Name: "package 0", Command: []string{os.Args[0]}, Environ: []string{asServer + "=" + as}, Timeout: timeout}
}

// answers is a server of tools that answers tools/list with a text, in which CURSOR is the number of the request.
func answers(page string) http.Handler {
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := page
		switch q.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`
		case "tools/list":
			n++
		default:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, strings.ReplaceAll(result, "CURSOR", fmt.Sprint(n)))
	})
}

// noAnswer waits until the client goes, which is noticed once the body is read.
func noAnswer(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestBadServers checks that each server whose list is none gets an error that names it and what is wrong.
func TestBadServers(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host is asked") }))
	t.Cleanup(elsewhere.Close)
	const long = toollist.RemoteTimeout
	for name, c := range map[string]struct {
		handler http.Handler
		timeout time.Duration
		says    string
	}{
		"endless pages":  {answers(`{"tools":[],"nextCursor":"CURSOR"}`), long, "more than 20 pages of tools"},
		"too many tools": {answers(`{"tools":[` + strings.Repeat(`{"name":"a"},`, 1000) + `{"name":"b"}]}`), long, "more than 1000 tools"},
		"a large list":   {answers(`{"tools":[{"name":"a","description":"` + strings.Repeat("x", 2<<20) + `"}]}`), long, "more than 1114112 bytes"},
		"a huge answer":  {answers(`{"tools":[{"name":"a","description":"` + strings.Repeat("x", 5<<20) + `"}]}`), long, "more than 4 MiB"},
		"one name":       {answers(`{"tools":[{"name":"a"},{"name":"a"}]}`), long, `two tools have the name "a"`},
		"a member twice": {answers(`{"tools":[{"name":"a","title":"b","title":"c"}]}`), long, "RFC 8785"},
		"no answer":      {http.HandlerFunc(noAnswer), 50 * time.Millisecond, "within 50ms"},
		"a redirect":     {http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect), long, "leads to another host"},
		"no server":      {http.NotFoundHandler(), long, "connect"},
	} {
		if _, err := read(t, c.handler, c.timeout); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "http://127.0.0.1:") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %.300v, want %q", name, err, c.says)
		}
	}
}

// TestHints checks that a hint is kept as the server says it, also where it says the default.
func TestHints(t *testing.T) {
	list, err := read(t, answers(`{"tools":[{"name":"a","annotations":{"readOnlyHint":false}},{"name":"b","annotations":{}}]}`), toollist.RemoteTimeout)
	must.Succeed(t, err)
	if got := string(list.Canonical()); got != `{"tools":[{"annotations":{"readOnlyHint":false},"name":"a"},{"name":"b"}]}` {
		t.Errorf("the list is %s", got)
	}
}

// TestBadPackages checks that a package that ends, does not answer or does not exist is an error that names it, without
// what it writes.
func TestBadPackages(t *testing.T) {
	missing := program("", toollist.PackageTimeout)
	missing.Command = []string{"no-program-of-this-name"}
	for says, p := range map[string]toollist.Program{
		"does not answer within 300ms": program("silent", 300*time.Millisecond),
		"package 0: connect":           program("ends", toollist.PackageTimeout),
		"executable file not found":    missing,
	} {
		if _, err := toollist.ReadProgram(t.Context(), p); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "package 0") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestNothingIsLeft checks that what a package has started ends with it, also if it ignores the signal.
func TestNothingIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // nothing is accepted any more
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := program("starts", toollist.PackageTimeout)
	p.Environ = append(p.Environ, "LISTENER="+l.Addr().String())
	go func() {
		_, err := toollist.ReadProgram(ctx, p)
		ended <- err
	}()
	c, err := l.Accept()
	must.Succeed(t, err)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the read ends with %v", err)
	}
	must.Succeed(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the process is left: %v", err)
	}
}

// TestAddresses checks that headers are not sent in plain to another machine, and what is no address.
func TestAddresses(t *testing.T) {
	for address, says := range map[string]string{
		"http://weather.example.com/mcp": "https only", "weather.example.com": "the form", "ftp://weather.example.com": "the form",
		"https://user:pass@weather.example.com/mcp": "the form",
	} {
		_, err := toollist.ReadRemote(t.Context(), toollist.Remote{URL: address, Header: map[string]string{"A": "b"}, Timeout: time.Second})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
