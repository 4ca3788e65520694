package registryapi_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// BenchmarkKeptResponses compares reads of kept responses, through the whole listener but without
// sockets, with a handler that sends the same bytes and headers.
func BenchmarkKeptResponses(b *testing.B) {
	s := &fixedServers{}
	for i := range 100 {
		s.page.Records = append(s.page.Records, record(b, "com.example/server-"+strconv.Itoa(i), "1.0.0"))
	}
	c := clocktest.NewManual(now)
	api, end := registryapi.New(registryapi.Config{Cache: readcache.Config{Bytes: 1 << 20}}, anybody{},
		newReads(s, newViews(b)), nil, readcache.Ports{Changes: noChanges{}, Clock: c})
	b.Cleanup(end)
	clients := newMemoryListener()
	resttest.ServeOn(b, rest.New(resttest.Config(), rest.Ports{
		Parts: []rest.Part{api}, Health: new(rest.Health), Throttle: unlimited{}, Clock: c, Log: discardLog(),
		Bodies: requestbody.NewBudget(requestbody.Config{}), Metrics: prometheus.NewRegistry(),
	}), httpconn.NewListener(clients, httpconn.ListenerOptions{Log: discardLog()}))
	const list = "/v0.1/servers?limit=100"
	for name, request := range map[string]string{
		"latest":       "GET /v0.1/servers/com.example%2Fserver-0/versions/latest HTTP/1.1\r\nHost: a\r\n\r\n",
		"list":         "GET " + list + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"not modified": "GET " + list + " HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
	} {
		first := clients.send(request, 1)
		answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(first)), nil)
		must.Succeed(b, err)
		b.Run(name+"/service", func(b *testing.B) { clients.measure(b, request) })
		copies := newMemoryListener()
		go func() { _ = newCopier(answer).Listener(copies) }() // until the process ends
		b.Run(name+"/copy", func(b *testing.B) { copies.measure(b, request) })
	}
}

// newCopier returns a service that sends the bytes and headers of a response.
func newCopier(answer *http.Response) *fiber.App {
	body, _ := io.ReadAll(answer.Body) // it is in memory
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(func(c *fiber.Ctx) error {
		for name, values := range answer.Header {
			if name != "Date" && name != "Content-Length" {
				c.Set(name, values[0])
			}
		}
		return c.Status(answer.StatusCode).Send(body)
	})
	return app
}

// memoryListener accepts connections on which the same request arrives again and again.
type memoryListener struct {
	conns chan net.Conn
}

func newMemoryListener() *memoryListener { return &memoryListener{make(chan net.Conn)} }

func (l *memoryListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *memoryListener) Close() error   { close(l.conns); return nil }
func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// send sends a request n times and returns the first response.
func (l *memoryListener) send(request string, n int) []byte {
	c := &repeatingConn{request: request, left: n, local: l.Addr(), closed: make(chan struct{})}
	l.conns <- c
	<-c.closed
	return c.first
}

func (l *memoryListener) measure(b *testing.B, request string) {
	b.Helper()
	b.ReportAllocs()
	if first := l.send(request, b.N); !strings.HasPrefix(string(first), "HTTP/1.1 200") &&
		!strings.HasPrefix(string(first), "HTTP/1.1 304") {
		b.Fatalf("%s", first)
	}
}

// repeatingConn receives a request several times, and keeps the first response.
type repeatingConn struct {
	request string
	left    int
	local   net.Addr
	first   []byte
	second  bool // the request was received twice
	closed  chan struct{}
}

func (c *repeatingConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	c.second = len(c.first) > 0
	return copy(p, c.request), nil
}

func (c *repeatingConn) Write(p []byte) (int, error) {
	if !c.second {
		c.first = append(c.first, p...)
	}
	return len(p), nil
}

func (c *repeatingConn) Close() error                     { close(c.closed); return nil }
func (c *repeatingConn) LocalAddr() net.Addr              { return c.local }
func (c *repeatingConn) RemoteAddr() net.Addr             { return c.local }
func (c *repeatingConn) SetDeadline(time.Time) error      { return nil }
func (c *repeatingConn) SetReadDeadline(time.Time) error  { return nil }
func (c *repeatingConn) SetWriteDeadline(time.Time) error { return nil }
