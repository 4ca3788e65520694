package statsd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// testSeries are statistics whose series the test sets.
type testSeries struct {
	noSeries
	series []*decide.Series
}

func (c *testSeries) Series() iter.Seq[*decide.Series] { return slices.Values(c.series) }
func (*testSeries) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

func newTestSeries(paths ...string) *testSeries {
	c := &testSeries{}
	for _, path := range paths {
		c.series = append(c.series, &decide.Series{Domain: "d", Path: path, Hits: &ratelimit.Hits{}})
	}
	return c
}

func (c *testSeries) hit(by uint64) {
	for _, s := range c.series {
		s.Hits.Refused.Add(by)
	}
}

// wantedCounts returns the counts that a daemon must receive if each series has this count.
func (c *testSeries) wantedCounts(by int) map[string]int {
	all := map[string]int{}
	for _, s := range c.series {
		all["ratelimit.service.rate_limit.d."+s.Path+".total_hits"] = by
	}
	return all
}

// daemon is a metrics daemon on a TCP port. The test decides when it reads.
type daemon struct {
	*net.TCPListener
	connections chan *net.TCPConn
	mutex       sync.Mutex
	got         map[string]int
	wrong       []string
}

func newDaemon(t *testing.T, address string) *daemon {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must.Succeed(t, err)
	d := &daemon{TCPListener: l.(*net.TCPListener), connections: make(chan *net.TCPConn, 100), got: map[string]int{}}
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	go func() {
		for {
			conn, err := d.AcceptTCP()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() }) // the test is over
			d.connections <- conn
		}
	}()
	return d
}

// nextConnection returns the next connection.
func (d *daemon) nextConnection(t *testing.T) *net.TCPConn {
	t.Helper()
	return await.Receive(t, "a connection of the sink", d.connections)
}

// readCounts adds up the counters of whole lines until the connection ends.
func (d *daemon) readCounts(conn net.Conn) {
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		name, rest, _ := strings.Cut(line, ":")
		value, isCounter := strings.CutSuffix(rest, "|c\n")
		by, err := strconv.Atoi(value)
		d.mutex.Lock()
		if isCounter && err == nil {
			d.got[name] += by
		} else if !strings.HasSuffix(line, "|ms\n") {
			d.wrong = append(d.wrong, line)
		}
		d.mutex.Unlock()
	}
}

// awaitCounts waits until the daemon has received exactly the wanted counts.
func (d *daemon) awaitCounts(t *testing.T, want map[string]int) {
	t.Helper()
	await.Until(t, "the wanted counts", func() bool {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		if len(d.wrong) > 0 {
			t.Fatalf("the daemon received the malformed line %q", d.wrong[0])
		}
		return maps.Equal(d.got, want)
	})
}

// openTCPSink returns a sink to an address, its stream and the lines that it logs.
func openTCPSink(t *testing.T, c *testSeries, address net.Addr) (*Sink, *tcpStream, *test.Hook) {
	t.Helper()
	port := address.(*net.TCPAddr).Port
	config := Config{Daemon: true, Protocol: "tcp", Host: "127.0.0.1", Port: port, FlushInterval: 10 * time.Millisecond}
	must.Succeed(t, config.Validate())
	log, logged := test.NewNullLogger()
	s, err := ToDaemon(config, statistics.New(c, c, statistics.Options{}).NewChanges(), logrus.NewEntry(log))
	must.Succeed(t, err)
	to := s.to.(*tcpStream)
	t.Cleanup(to.close)
	return s, to, logged
}

// TestTCPFlushes checks that each flush sends the increase of the counters, over one connection.
func TestTCPFlushes(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newTestSeries("a", "b")
	s, _, _ := openTCPSink(t, c, d.Addr())
	for round := 1; round <= 3; round++ {
		c.hit(2)
		must.Succeed(t, s.sendAll(t.Context()))
		if round == 1 {
			go d.readCounts(d.nextConnection(t))
		}
		d.awaitCounts(t, c.wantedCounts(2*round))
	}
	if len(d.connections) > 0 {
		t.Error("a flush opened a second connection")
	}
}

// TestTCPDaemonStartsLater checks that no counts are lost before the daemon starts, that the sink
// does not try to connect at every flush, and that the log has one line when sending begins to fail
// and one when it works.
func TestTCPDaemonStartsLater(t *testing.T) {
	c, port := newTestSeries("a"), instance.FreePort()
	address, err := net.ResolveTCPAddr("tcp", "127.0.0.1:"+port)
	must.Succeed(t, err)
	s, to, logged := openTCPSink(t, c, address)
	began := time.Now()
	for range 50 {
		c.hit(1)
		s.logFailure(s.sendAll(t.Context()))
		if to.wait != firstRetry || to.retry.Before(began.Add(firstRetry*3/4)) {
			t.Fatalf("the wait before the next attempt is %v, until %v after the first", to.wait, to.retry.Sub(began))
		}
		to.retry = began.Add(time.Hour)
	}
	later := newDaemon(t, address.String())
	to.retry = time.Now()
	s.logFailure(s.sendAll(t.Context()))
	go later.readCounts(later.nextConnection(t))
	later.awaitCounts(t, c.wantedCounts(50))
	if n := len(logged.AllEntries()); n != 2 {
		t.Errorf("the log has %d lines, want 2", n)
	}
}

// TestTCPDaemonRestarts checks that the sink does not write to a connection that the daemon has
// closed.
func TestTCPDaemonRestarts(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newTestSeries("a")
	s, to, _ := openTCPSink(t, c, d.Addr())
	for round := 1; round <= 3; round++ {
		c.hit(1)
		must.Succeed(t, s.sendAll(t.Context()))
		conn := d.nextConnection(t)
		go d.readCounts(conn)
		d.awaitCounts(t, c.wantedCounts(round))
		_ = conn.Close()
		await.Closed(t, "the end of the connection", to.ended)
	}
}

// TestTCPDaemonHangs checks that a flush ends with a timeout if the daemon does not read, and that
// the sink keeps only a few lines in memory. A daemon that reads again receives all counts once.
func TestTCPDaemonHangs(t *testing.T) {
	t.Parallel()
	paths := make([]string, 40_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("%05d_%s", i, strings.Repeat("x", 300))
	}
	d, c := newDaemon(t, "127.0.0.1:0"), newTestSeries(paths...)
	s, to, _ := openTCPSink(t, c, d.Addr())
	c.hit(1)
	for range 2 {
		err := s.sendAll(t.Context())
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("a flush to a daemon that does not read returns %v, want a timeout", err)
		}
		if len(to.pending) > maxPending {
			t.Fatalf("%d bytes are pending, want at most %d", len(to.pending), maxPending)
		}
		c.hit(1)
	}
	go d.readCounts(d.nextConnection(t))
	await.Until(t, "a flush without an error", func() bool { return s.sendAll(t.Context()) == nil })
	d.awaitCounts(t, c.wantedCounts(3))
	if len(d.connections) > 0 {
		t.Error("the sink opened a second connection to a slow daemon")
	}
}

// TestTCPDaemonHangsTooLong checks that the sink closes the connection of a daemon that has not
// read for a long time, and sends the interrupted line again, as a whole, over a new connection.
func TestTCPDaemonHangsTooLong(t *testing.T) {
	t.Parallel()
	d, c := newDaemon(t, "127.0.0.1:0"), newTestSeries("a")
	s, to, _ := openTCPSink(t, c, d.Addr())
	must.Succeed(t, s.sendAll(t.Context()))
	first := d.nextConnection(t)
	fillBuffers(t, to.conn.(*net.TCPConn), first)
	to.pending, to.written = append(to.pending[:0], "cut:1|c\nnext:2|c\n"...), 3
	to.taken = time.Now().Add(-hungAfter - time.Second)
	if to.writeUnsent() == nil || to.conn != nil {
		t.Fatal("the sink keeps a connection that the daemon has not read for a long time")
	}
	_ = first.Close()
	c.hit(4)
	must.Succeed(t, s.sendAll(t.Context()))
	go d.readCounts(d.nextConnection(t))
	want := c.wantedCounts(4)
	want["cut"], want["next"] = 1, 2
	d.awaitCounts(t, want)
}

// fillBuffers writes to a connection until no more fits into its buffers, and into those of its
// other end, which reads nothing. They no longer grow.
func fillBuffers(t *testing.T, conn, other *net.TCPConn) {
	t.Helper()
	must.Succeed(t, errors.Join(conn.SetWriteBuffer(1<<14), other.SetReadBuffer(1<<14)))
	for n, filler := 1, make([]byte, 1<<14); n > 0; {
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // the write fails without it too
		n, _ = conn.Write(filler)                                         // the deadline
	}
}

// TestTCPEndsInTime checks that a sink that is stopped sends the last counts and then ends.
func TestTCPEndsInTime(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newTestSeries("a")
	s, _, _ := openTCPSink(t, c, d.Addr())
	s.interval = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	c.hit(5)
	cancel()
	go d.readCounts(d.nextConnection(t))
	d.awaitCounts(t, c.wantedCounts(5))
	must.Succeed(t, await.Receive(t, "the end of the sink", ended))
}
