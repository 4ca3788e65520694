package memcached

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// nameServer answers SRV queries over UDP with the current targets. If there are no targets, it
// replies that the name does not exist.
type nameServer struct {
	resolver *net.Resolver

	mu      sync.Mutex
	targets []string // host:port
	queries int
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = packets.Close() }) // an error has no effect on the test
	s := &nameServer{resolver: &net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", packets.LocalAddr().String())
		}}}
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply, err := s.reply(buffer[:n]); err == nil {
				_, _ = packets.WriteTo(reply, from) // the resolver repeats the query
			}
		}
	}()
	return s
}

func (s *nameServer) set(targets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets = targets
}

func (s *nameServer) countQueries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

func (s *nameServer) reply(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	m.Response, m.Additionals = true, nil
	if len(s.targets) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	for i, target := range s.targets {
		host, port, err := net.SplitHostPort(target)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, err
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{
				Name: m.Questions[0].Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET, TTL: 1,
			},
			Body: &dnsmessage.SRVResource{
				Priority: uint16(i), Port: uint16(n), Target: dnsmessage.MustNewName(host + "."),
			},
		})
	}
	return m.Pack()
}

func openSRV(t *testing.T, s *nameServer, refresh time.Duration) *Client {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, end, err := Open(t.Context(), Config{
		SRV: "_memcache._tcp.cache.test", SRVRefresh: refresh, MaxIdleConns: 1, Timeout: 2 * time.Second,
		resolver: s.resolver,
	}, logrus.NewEntry(log))
	must.Succeed(t, err)
	t.Cleanup(end)
	return c
}

func (c *Client) names() []string {
	var names []string
	for _, n := range *c.ring.nodes.Load() {
		names = append(names, n.name)
	}
	return names
}

func awaitNames(t *testing.T, c *Client, want ...string) {
	t.Helper()
	await.Until(t, fmt.Sprintf("the nodes %q", want), func() bool { return slices.Equal(c.names(), want) })
}

func TestLookup(t *testing.T) {
	s := newNameServer(t)
	s.set("b.cache.test:2", "A.cache.test:1", "b.cache.test:2", "a.cache.test:10")
	got, err := srvRecord{name: "_memcache._tcp.cache.test", resolver: s.resolver}.lookupNodes(t.Context())
	if want := []string{"a.cache.test:1", "a.cache.test:10", "b.cache.test:2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, targets := range [][]string{nil, {"a.cache.test:0"}} {
		s.set(targets...)
		if got, err := (srvRecord{
			name: "_memcache._tcp.cache.test", resolver: s.resolver,
		}).lookupNodes(t.Context()); err == nil {
			t.Errorf("%q: %q, want an error", targets, got)
		}
	}
}

// TestCountingOnNodesOfTheRecord counts on a real memcached that an SRV record names.
func TestCountingOnNodesOfTheRecord(t *testing.T) {
	address := os.Getenv("TEST_MEMCACHED_ADDR")
	if address == "" {
		t.Skip("TEST_MEMCACHED_ADDR is not set")
	}
	_, port, err := net.SplitHostPort(address)
	must.Succeed(t, err)
	address = "localhost:" + port // an SRV record contains a name, not an IP address
	s := newNameServer(t)
	c := openSRV(t, s, 0)
	hits := []counter.Hit{{Key: fmt.Sprintf("srv|%d", time.Now().UnixNano()), Addend: 1, TTL: time.Minute}}
	after := make([]counter.Result, 1)
	if err := c.Count(t.Context(), hits, after, counter.Each); !fault.Is(err, fault.Unavailable) || c.Connected() {
		t.Errorf("while the record does not exist: %v, connected %t", err, c.Connected())
	}
	if err := c.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Ping while the record does not exist: %v", err)
	}
	s.set(address) // the look-up is tried again until it succeeds
	awaitNames(t, c, address)
	if err := c.Count(t.Context(), hits, after, counter.Each); err != nil || after[0].Count != 1 {
		t.Errorf("counted %v, %v", after, err)
	}
}

func TestRefresh(t *testing.T) {
	s := newNameServer(t)
	s.set("a.cache.test:1", "b.cache.test:2")
	c := openSRV(t, s, time.Millisecond)
	awaitNames(t, c, "a.cache.test:1", "b.cache.test:2")
	stays := (*c.ring.nodes.Load())[1]
	s.set("b.cache.test:2", "c.cache.test:3")
	awaitNames(t, c, "b.cache.test:2", "c.cache.test:3")
	if (*c.ring.nodes.Load())[0] != stays {
		t.Error("a node in both lists was opened again")
	}
	queries := s.countQueries()
	s.set() // a missing record does not change the nodes
	await.Until(t, "two more queries", func() bool { return s.countQueries() >= queries+2 })
	awaitNames(t, c, "b.cache.test:2", "c.cache.test:3")
	s.set("d.cache.test:4")
	awaitNames(t, c, "d.cache.test:4")
}
