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
)

// counted are statistics of series that the test makes up.
type counted struct {
	none
	series []*decide.Series
}

func (c *counted) Series() iter.Seq[*decide.Series] { return slices.Values(c.series) }
func (*counted) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

func newCounted(paths ...string) *counted {
	c := &counted{}
	for _, path := range paths {
		c.series = append(c.series, &decide.Series{Domain: "d", Path: path, Hits: &ratelimit.Hits{}})
	}
	return c
}

func (c *counted) hit(by uint64) {
	for _, s := range c.series {
		s.Hits.Total.Add(by)
	}
}

// want returns what a daemon is to have got of each series.
func (c *counted) want(by int) map[string]int {
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
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{TCPListener: l.(*net.TCPListener), connections: make(chan *net.TCPConn, 100), got: map[string]int{}}
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	go func() {
		for {
			conn, err := d.AcceptTCP()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() }) // likewise
			d.connections <- conn
		}
	}()
	return d
}

// next returns the next connection.
func (d *daemon) next(t *testing.T) *net.TCPConn {
	t.Helper()
	select {
	case conn := <-d.connections:
		return conn
	case <-time.After(20 * time.Second):
		t.Fatal("nobody connects")
		return nil
	}
}

// read adds up whole lines until the connection ends.
func (d *daemon) read(conn net.Conn) {
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

// await waits until the daemon has received exactly the wanted counts.
func (d *daemon) await(t *testing.T, want map[string]int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		d.mutex.Lock()
		got, wrong := maps.Clone(d.got), slices.Clone(d.wrong)
		d.mutex.Unlock()
		if len(wrong) > 0 {
			t.Fatalf("line %q", wrong[0])
		}
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d names came, want %d", len(got), len(want))
		}
	}
}

// toTCP returns a sink to an address and its stream.
func toTCP(t *testing.T, c *counted, address net.Addr) (*Sink, *tcpStream, *test.Hook) {
	t.Helper()
	port := address.(*net.TCPAddr).Port
	config := Config{Daemon: true, Protocol: "tcp", Host: "127.0.0.1", Port: port, FlushInterval: 10 * time.Millisecond}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	log, said := test.NewNullLogger()
	s, err := ToDaemon(config, statistics.New(c, c, statistics.Options{}).NewChanges(), logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	to := s.to.(*tcpStream)
	t.Cleanup(to.close)
	return s, to, said
}

// TestTCP: what grew arrives with each flush, over one connection.
func TestTCP(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newCounted("a", "b")
	s, _, _ := toTCP(t, c, d.Addr())
	for round := 1; round <= 3; round++ {
		c.hit(2)
		if err := s.sendAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			go d.read(d.next(t))
		}
		d.await(t, c.want(2*round))
	}
	if len(d.connections) > 0 {
		t.Error("a flush has made a connection of its own")
	}
}

// TestTCPDaemonComesLater: nothing is lost while the daemon is away, it is not asked at every
// flush, and the log has one line when sending fails and one when it works.
func TestTCPDaemonComesLater(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newCounted("a")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s, to, said := toTCP(t, c, d.Addr())
	for range 50 {
		c.hit(1)
		s.logFailure(s.sendAll(t.Context()))
	}
	if to.wait != firstRetry {
		t.Errorf("50 flushes have tried until the next wait is %v", to.wait)
	}
	later := newDaemon(t, d.Addr().String())
	for s.failing {
		s.logFailure(s.sendAll(t.Context()))
		time.Sleep(time.Millisecond)
	}
	go later.read(later.next(t))
	later.await(t, c.want(50))
	if n := len(said.AllEntries()); n != 2 {
		t.Errorf("the log has %d lines", n)
	}
}

// TestTCPDaemonRestarts: a connection that the daemon ended is noticed before anything is sent on
// it.
func TestTCPDaemonRestarts(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newCounted("a")
	s, to, _ := toTCP(t, c, d.Addr())
	for round := 1; round <= 3; round++ {
		c.hit(1)
		if err := s.sendAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn := d.next(t)
		go d.read(conn)
		d.await(t, c.want(round))
		_ = conn.Close()
		<-to.ended
	}
}

// TestTCPDaemonHangs: a daemon that takes nothing costs a flush no more than the time of a write,
// and memory for a few lines. When it reads again it gets everything once.
func TestTCPDaemonHangs(t *testing.T) {
	paths := make([]string, 40_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("%05d_%s", i, strings.Repeat("x", 300))
	}
	d, c := newDaemon(t, "127.0.0.1:0"), newCounted(paths...)
	s, to, _ := toTCP(t, c, d.Addr())
	c.hit(1)
	for range 2 {
		err := s.sendAll(t.Context())
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("a flush to a daemon that takes nothing: %v", err)
		}
		if len(to.pending) > maxPending {
			t.Fatalf("%d bytes wait", len(to.pending))
		}
		c.hit(1)
	}
	go d.read(d.next(t))
	for s.sendAll(t.Context()) != nil {
		time.Sleep(time.Millisecond)
	}
	d.await(t, c.want(3))
	if len(d.connections) > 0 {
		t.Error("the daemon was slow and got another connection")
	}
}

// TestTCPDaemonHangsForLong: in the end it gets a new connection, where the line that was cut comes
// whole.
func TestTCPDaemonHangsForLong(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newCounted("a")
	s, to, _ := toTCP(t, c, d.Addr())
	if err := s.sendAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := d.next(t)
	filler := strings.Repeat("x", maxPending-2) + "\n"
	for {
		to.pending = append(to.pending[:0], filler...)
		to.written = 0
		if to.writeUnsent() != nil && to.written == 0 && len(to.pending) == len(filler) {
			break // there is no room in between either
		}
	}
	to.pending, to.written = append(to.pending[:0], "cut:1|c\nnext:2|c\n"...), 3
	to.taken = time.Now().Add(-hungAfter - time.Second)
	if to.writeUnsent() == nil || to.conn != nil {
		t.Fatal("a connection that took nothing for long is kept")
	}
	_ = first.Close()
	c.hit(4)
	if err := s.sendAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	go d.read(d.next(t))
	want := c.want(4)
	want["cut"], want["next"] = 1, 2
	d.await(t, want)
}

// TestTCPEndsInTime: a hung daemon does not keep the service from ending.
func TestTCPEndsInTime(t *testing.T) {
	d, c := newDaemon(t, "127.0.0.1:0"), newCounted("a")
	s, _, _ := toTCP(t, c, d.Addr())
	s.interval = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	c.hit(5)
	cancel()
	go d.read(d.next(t))
	d.await(t, c.want(5))
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the sink does not end")
	}
}
