package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// dialFrom opens a connection from one of the addresses of this machine.
func dialFrom(t *testing.T, number int, address string) net.Conn {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+number))}}
	c, err := from.Dial("tcp4", address)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestUnfinishedBodies leaves 1,000 requests for each HTTP listener unfinished, in a long run 5,000:
// their headers announce bodies that never come, 1.5 GiB of them, or 7.5. The service, which
// deploy/kubernetes gives 512 MiB, must stay below 200 MiB, or 320, and serve everybody else meanwhile.
func TestUnfinishedBodies(t *testing.T) {
	const addresses = 100
	unfinished, bound := 1_000, 200<<20
	if !testing.Short() {
		unfinished, bound = 5_000, 320<<20
	}
	if fixture.RaceDetector {
		t.Skip("the race detector multiplies the memory")
	}
	e := fixture.NewEnvironment(t, "embedded")
	s := e.StartProcess(t, "GOMEMLIMIT=400MiB", "READ_TIMEOUT=10m", "AUTH_RATE_LIMIT=20")
	ada := e.NewPerson(t, "ada@example.com", "publish *")
	begin := func(listener, path, body string, n int) {
		for i := range n {
			request := "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + body
			if _, err := io.WriteString(dialFrom(t, i%addresses, listener), request); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Of each address, 15 requests are within the limit of 20 and wait for their bodies.
	begin(s.Process.API, "/auth/login", "Content-Length: 16000\r\n\r\n", 3*unfinished/10)
	begin(s.Process.API, "/v0.1/publish", "Content-Length: 1048000\r\n\r\n", unfinished/2)
	begin(s.Process.API, "/v0.1/validate", "Transfer-Encoding: chunked\r\n\r\nFFC00\r\n{", unfinished/5)
	begin(s.Process.RateLimitHTTP, "/json", "Content-Length: 1048000\r\n\r\n", unfinished)
	await.Until(t, "all requests are being received", func() bool {
		return s.ReadMetrics(
			"tollgate_http_requests_in_flight")["tollgate_http_requests_in_flight"].GetMetric()[0].GetGauge().
			GetValue() >= float64(unfinished)
	})
	ada.Login(t, s)
	apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", `{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}]}`).
		WantStatus(t, http.StatusOK)
	got := s.PeakMemory(t)
	t.Logf("%d MiB with %d unfinished requests", got>>20, 2*unfinished)
	if got > bound {
		t.Errorf("%d MiB with %d unfinished requests, want at most %d MiB", got>>20, 2*unfinished, bound>>20)
	}
}

// TestRefusedBeforeTheBody checks that a request over the limit of its address, or with too large a
// body, gets its response before the body is sent.
func TestRefusedBeforeTheBody(t *testing.T) {
	s := fixture.NewEnvironment(t, "embedded").Start(t, "AUTH_RATE_LIMIT=1", "READ_TIMEOUT=10m")
	for path, lengths := range map[string][]int{
		"/auth/login": {16<<10 + 1, 300}, "/v0.1/auth/dns": {32<<10 + 1}, "/v0.1/publish": {1<<20 + 1},
	} {
		for i, length := range lengths {
			c := dialFrom(t, 1, s.Process.API)
			// fails for a closed connection only, as the next call does
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path,
				length); err != nil {
				t.Fatal(err)
			}
			want := []int{http.StatusRequestEntityTooLarge, http.StatusTooManyRequests}[i]
			if got := readResponses(t, path, c); len(got) != 1 || got[0].Status != want {
				t.Errorf("%s with %d bytes: %+v, want %d", path, length, got, want)
			}
		}
	}
}

// TestConnectionsOfOneAddress opens as many connections as the service accepts from one address and
// keeps them alive. Other addresses must still be served, and so must the address itself.
func TestConnectionsOfOneAddress(t *testing.T) {
	const most = 40
	s := fixture.NewEnvironment(t, "embedded").Start(t, fmt.Sprint("MAX_CONNECTIONS=", most))
	get := func(number int) net.Conn {
		c := dialFrom(t, number, s.Process.API)
		_ = c.SetDeadline(time.Now().Add(30 * time.Second)) // fails for a closed connection only, as the next call does
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", response, err)
		}
		return c
	}
	first, ended := get(1), make(chan error, 1)
	for range 2 * most {
		get(1)
	}
	get(2)
	go func() {
		_, err := io.Copy(io.Discard, first)
		ended <- err
	}()
	// It is the oldest as soon as its server has noted that it is idle, which on a busy machine may be after the others.
	await.Until(t, "the end of the oldest idle connection", func() bool {
		get(1)
		return len(ended) > 0
	})
	if err := <-ended; err != nil {
		t.Errorf("the oldest idle connection ends with %v", err)
	}
}
