package requestbody_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

const maxBody = 1 << 20

// server echoes bodies. A request below /refused/ is refused without its body; the client is the
// query.
type server struct {
	address string
	arrived chan struct{} // gets a value for each request for /wait
	handled chan struct{} // the handler of /wait waits for it
}

// answer sets the response. RequestCtx.Error would reset its headers.
func answer(c *fasthttp.RequestCtx, body string, status int) {
	c.SetStatusCode(status)
	c.SetBodyString(body)
}

func serve(t *testing.T, budget *requestbody.Budget) *server {
	t.Helper()
	s := &server{arrived: make(chan struct{}), handled: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	s.address = l.Addr().String()
	web := &fasthttp.Server{
		HeaderReceived: requestbody.Postpone, StreamRequestBody: true, ReadBufferSize: 16 << 10,
		ReadTimeout: time.Minute, IdleTimeout: time.Minute, DisablePreParseMultipartForm: true,
		Handler: func(c *fasthttp.RequestCtx) { s.handle(c, budget) },
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(httpconn.TrackConnections(l, httpconn.FirstHeader)) }()
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) handle(c *fasthttp.RequestCtx, budget *requestbody.Budget) {
	length, err := httpconn.CheckFraming(&c.Request.Header)
	if err != nil {
		answer(c, err.Error(), http.StatusBadRequest)
		c.SetConnectionClose()
		return
	}
	if string(c.Path()) == "/refused" {
		requestbody.Skip(c, length)
		answer(c, "refused", http.StatusTooManyRequests)
		return
	}
	body, err := budget.Read(c, requestbody.Request{
		Length: length, Max: maxBody, Client: string(c.QueryArgs().QueryString()),
	})
	f, isFault := fault.As(err)
	switch {
	case errors.Is(err, requestbody.ErrTooLarge):
		answer(c, "too large", http.StatusRequestEntityTooLarge)
	case errors.Is(err, requestbody.ErrIncomplete):
		answer(c, "incomplete", http.StatusBadRequest)
	case isFault && f.Kind == fault.Exhausted:
		answer(c, "share", http.StatusTooManyRequests)
	case err != nil:
		answer(c, err.Error(), http.StatusServiceUnavailable)
	default:
		defer body.Release()
		if string(c.Path()) == "/wait" {
			s.arrived <- struct{}{}
			<-s.handled
		}
		_, _ = c.Write(c.Request.Body()) // into memory
	}
}

// client is a connection that sends requests as text.
type client struct {
	net.Conn
	answers *bufio.Reader
}

func (s *server) connect(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return &client{c, bufio.NewReader(c)}
}

func (c *client) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// want reads a response, and checks its status, body and whether the connection stays open.
func (c *client) want(t *testing.T, status int, body string, stays bool) {
	t.Helper()
	r, err := http.ReadResponse(c.answers, nil)
	must.Succeed(t, err)
	got, err := io.ReadAll(r.Body)
	must.Succeed(t, err)
	if r.StatusCode != status || string(got) != body || r.Close == stays {
		t.Errorf("%d %.100q, closes %v, want %d %.100q and %v", r.StatusCode, got, r.Close, status, body, !stays)
	}
}

func withLength(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func inChunks(path, body string, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", path)
	for body != "" {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// TestBodies checks bodies of all sizes with and without a length, several on one connection, and
// that all memory is given back.
func TestBodies(t *testing.T) {
	s := serve(t, requestbody.NewBudget(requestbody.Config{InFlight: 8 << 20}))
	for _, size := range []int{0, 1, 4095, 4096, 4097, 8192, 100_000, maxBody - 1, maxBody} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		c := s.connect(t)
		text := withLength("/", body) + inChunks("/", body, 1000) + withLength("/", "next") + inChunks("/", "next", 3) +
			"GET /?none HTTP/1.1\r\nHost: a\r\n\r\n" + withLength("/?client", body)
		go func() { _, _ = io.WriteString(c, text) }() // the answers show whether it was sent
		c.want(t, 200, body, true)
		c.want(t, 200, body, true)
		c.want(t, 200, "next", true)
		c.want(t, 200, "next", true)
		c.want(t, 200, "", true)
		c.want(t, 200, body, true)
	}
	for range 50 {
		for _, text := range []string{
			withLength("/", strings.Repeat("a", maxBody+1)), inChunks("/", strings.Repeat("a", maxBody+1), maxBody+1),
		} {
			c := s.connect(t)
			go func() { _, _ = io.WriteString(c, text) }() // the server may close before it has read all
			c.want(t, 413, "too large", false)
		}
	}
	c := s.connect(t)
	c.send(t, withLength("/?client", "still there"))
	c.want(t, 200, "still there", true)
}

// TestRefusedBodies checks that a refused request keeps its connection if its body came along, and
// that no part of a body becomes a request otherwise.
func TestRefusedBodies(t *testing.T) {
	s := serve(t, requestbody.NewBudget(requestbody.Config{}))
	hidden := withLength("/", "hidden")
	for _, first := range []string{withLength("/refused", hidden), inChunks("/refused", hidden, 7)} {
		c := s.connect(t)
		c.send(t, first+withLength("/", "next"))
		c.want(t, 429, "refused", true)
		c.want(t, 200, "next", true)
	}
	for _, first := range []string{
		"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
		"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
		"POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFF\r\n",
	} {
		c := s.connect(t)
		c.send(t, first)
		c.want(t, 429, "refused", false)
		c.send(t, hidden)
		if _, err := c.answers.Peek(1); !errors.Is(err, io.EOF) {
			t.Errorf("%q: after the refusal: %v", first, err)
		}
	}
	for _, text := range []string{"5\r\nabcdeX\r\n0\r\n\r\n", "zz\r\n", "-1\r\n"} {
		c := s.connect(t)
		c.send(t, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+text+hidden)
		c.want(t, 400, "incomplete", false)
	}
}

// TestBudget fills the budget. Announced bodies take no memory; a client that has used its share
// and a large body are refused while small bodies of others are not.
func TestBudget(t *testing.T) {
	budget := requestbody.NewBudget(requestbody.Config{InFlight: 8 << 20})
	s := serve(t, budget)
	for range 50 {
		s.connect(t).send(t, "POST /?announced HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n{")
	}
	body := strings.Repeat("a", maxBody)
	var waiting []*client
	hold := func(name string) {
		c := s.connect(t)
		c.send(t, withLength("/wait?"+name, body))
		waiting = append(waiting, c)
		await.Receive(t, name+": the body", s.arrived)
	}
	answers := func(path, body string) (status int) {
		c := s.connect(t)
		go func() { _, _ = io.WriteString(c, withLength(path, body)) }() // may be refused before it is sent
		r, err := http.ReadResponse(c.answers, nil)
		must.Succeed(t, err)
		defer r.Body.Close()
		return r.StatusCode
	}
	hold("one")
	if got := answers("/?one", body); got != 429 {
		t.Errorf("a client that has used its share got %d", got)
	}
	if got := answers("/?two", body); got != 200 {
		t.Errorf("another client got %d", got)
	}
	for i := range 4 {
		hold(fmt.Sprint("other", i))
	}
	if got := answers("/?two", body); got != 503 {
		t.Errorf("a large body without memory got %d", got)
	}
	if got := answers("/?two", "small"); got != 200 {
		t.Errorf("a small body got %d", got)
	}
	close(s.handled)
	for _, c := range waiting {
		c.want(t, 200, body, true)
	}
	await.Until(t, "the memory is given back", func() bool { return answers("/?one", body) == 200 })
}

func TestConfig(t *testing.T) {
	must.Succeed(t, (requestbody.Config{InFlight: 8 << 20}).Validate())
	for _, n := range []int{-1, 0, 8<<20 - 1} {
		if err := (requestbody.Config{
			InFlight: n,
		}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "BODIES_IN_FLIGHT: ") {
			t.Errorf("%d: %v", n, err)
		}
	}
}
