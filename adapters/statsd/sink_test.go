package statsd_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// maxPacket is the maximum size of a packet in bytes.
const maxPacket = 1432

// testCounts are statistics whose counters the test sets.
type testCounts struct {
	*statistics.Statistics
	stats  decide.Stats
	series []*decide.Series
}

func (c *testCounts) Current() *ruleset.Set            { return nil }
func (c *testCounts) Loaded() uint64                   { return 0 }
func (c *testCounts) Refused() uint64                  { return 0 }
func (c *testCounts) Stats() *decide.Stats             { return &c.stats }
func (c *testCounts) Series() iter.Seq[*decide.Series] { return slices.Values(c.series) }
func (*testCounts) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

func newTestCounts(paths ...string) *testCounts {
	c := &testCounts{}
	for _, path := range paths {
		c.series = append(c.series, &decide.Series{Domain: "shop", Path: path, Hits: &ratelimit.Hits{}})
	}
	c.Statistics = statistics.New(c, c, statistics.Options{})
	return c
}

// daemon is a metrics daemon that receives packets over UDP.
type daemon struct {
	conn net.PacketConn
	got  chan string // packets
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	return listenUDP(t, "127.0.0.1:0")
}

func listenUDP(t *testing.T, address string) *daemon {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	must.Succeed(t, err)
	must.Succeed(t, conn.(*net.UDPConn).SetReadBuffer(8<<20))
	d := &daemon{conn, make(chan string, 100_000)}
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			d.got <- string(buffer[:n])
		}
	}()
	t.Cleanup(func() { _ = conn.Close() })
	return d
}

func (d *daemon) daemonConfig() statsd.Config {
	return statsd.Config{
		Daemon: true, Protocol: "udp", Host: "127.0.0.1", Port: d.conn.LocalAddr().(*net.UDPAddr).Port,
		FlushInterval: 30 * time.Minute,
	}
}

// nextLines returns the lines of the next packet.
func (d *daemon) nextLines(t *testing.T) []string {
	t.Helper()
	packet := await.Receive(t, "a packet", d.got)
	if len(packet) > maxPacket {
		t.Errorf("a packet has %d bytes, want at most %d", len(packet), maxPacket)
	}
	return strings.Split(packet, "\n")
}

// awaitSum reads packets until the counters whose names begin with prefix add up to want.
func (d *daemon) awaitSum(t *testing.T, prefix string, want int) {
	t.Helper()
	for got := 0; got != want; {
		for _, line := range d.nextLines(t) {
			name, rest, _ := strings.Cut(line, ":")
			value, ok := strings.CutSuffix(rest, "|c")
			by, err := strconv.Atoi(value)
			if !ok || err != nil {
				t.Fatalf("line %q is not a counter", line)
			}
			if strings.HasPrefix(name, prefix) {
				got += by
			}
		}
		if got > want {
			t.Fatalf("the counters of %s add up to %d, want %d", prefix, got, want)
		}
	}
}

func discardLog() *logrus.Entry {
	log, _ := test.NewNullLogger()
	return logrus.NewEntry(log)
}

// startSink runs a sink. The function that it returns stops the sink and waits until it has ended.
func startSink(t *testing.T, s *statsd.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		must.Succeed(t, <-ended)
	}
}

func openSink(t *testing.T, c statsd.Config, counts *testCounts) *statsd.Sink {
	t.Helper()
	must.Succeed(t, c.Validate())
	s, err := statsd.ToDaemon(c, counts.NewChanges(), discardLog())
	must.Succeed(t, err)
	return s
}

// TestDifferences checks that the increase of a counter is sent at each interval, and the rest when
// the sink stops.
func TestDifferences(t *testing.T) {
	d, counts := newDaemon(t), newTestCounts("user_ada")
	c := d.daemonConfig()
	c.FlushInterval = 10 * time.Millisecond
	stop := startSink(t, openSink(t, c, counts))
	hits := counts.series[0].Hits
	const name = "ratelimit.service.rate_limit.shop.user_ada.total_hits"
	for _, by := range []uint64{3, 1, 7} {
		hits.Refused.Add(by)
		d.awaitSum(t, name, int(by))
	}
	stop()
	if len(d.got) > 0 {
		t.Errorf("the sink sent %q although no counter increased", <-d.got)
	}
	// a new sink starts at 0 and sends everything when it stops
	stop = startSink(t, openSink(t, d.daemonConfig(), counts))
	stop()
	d.awaitSum(t, name, 11)
}

// TestAddresses checks that the sink sends to a host name, with its IPv4 address, and to an IPv6
// address.
func TestAddresses(t *testing.T) {
	for address, host := range map[string]string{"127.0.0.1:0": "localhost", "[::1]:0": "::1"} {
		probe, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Logf("skip %s, which is not available on this machine: %v", address, err)
			continue
		}
		_ = probe.Close()
		d, counts := listenUDP(t, address), newTestCounts("k")
		counts.series[0].Hits.Refused.Add(1)
		c := d.daemonConfig()
		c.Host = host
		startSink(t, openSink(t, c, counts))()
		d.awaitSum(t, "ratelimit.service.rate_limit.shop.k.total_hits", 1)
	}
}

// TestManyCounters checks that all packets of a large flush arrive.
func TestManyCounters(t *testing.T) {
	const many = 20_000
	paths := make([]string, many)
	for i := range paths {
		paths[i] = fmt.Sprintf("user_%05d", i)
	}
	d, counts := newDaemon(t), newTestCounts(paths...)
	for i, s := range counts.series {
		s.Hits.Near.Add(uint64(i % 3))
		s.Hits.Over.Add(1)
	}
	startSink(t, openSink(t, d.daemonConfig(), counts))()
	d.awaitSum(t, "ratelimit.service.rate_limit.shop.user_", many+many-1)
}

// TestForms checks the lines of one flush in each format.
func TestForms(t *testing.T) {
	two := []statsd.MogrifierConfig{
		{
			Variable: "A", Pattern: `^ratelimit\.service\.rate_limit\.(.*)\.(.*)\.(.*)$`, Name: "limits.$3",
			Tags: "domain:$1,descriptor:$2",
		},
		{Variable: "B", Pattern: `^ratelimit`, Name: "other$0.$0", Tags: ""},
	}
	tests := map[string]struct {
		change func(*statsd.Config)
		want   []string
	}{
		"plain counters": {func(*statsd.Config) {}, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"plain counters carry the extra tags in their names": {
			func(c *statsd.Config) { c.ExtraTags = []string{"zone:eu", "build:1.2:3", "none:"} },
			[]string{
				"ratelimit.service.call.should_rate_limit.store_error.__build=1_2_3.__zone=eu:2|c",
				"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit.__build=1_2_3.__zone=eu:5|c",
			},
		},
		"plain counters ignore mogrifiers": {func(c *statsd.Config) { c.Mogrifiers = two }, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"tagged counters": {
			func(c *statsd.Config) {
				c.Tagged, c.Daemon, c.ExtraTags = true, false, []string{"zone:eu", "build:1.2:3"}
			},
			[]string{
				"ratelimit.service.call.should_rate_limit.store_error:2|c|#zone:eu,build:1.2:3",
				"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c|#zone:eu,build:1.2:3",
			},
		},
		"tagged counters carry the tags of the Datadog libraries": {
			func(c *statsd.Config) {
				c.Tagged, c.ExtraTags = true, []string{"zone:eu"}
				c.Entity, c.Env, c.Service, c.Version = "pod-1", "prod", "shop,limits", "1.2"
			},
			[]string{
				"ratelimit.service.call.should_rate_limit.store_error:2|c|#dd.internal.entity_id:pod-1,env:prod,service:shop_limits,version:1.2,zone:eu",
				"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c|#dd.internal.entity_id:pod-1,env:prod,service:shop_limits,version:1.2,zone:eu",
			},
		},
		"plain counters do not carry the tags of the Datadog libraries": {func(c *statsd.Config) {
			c.Env = "prod"
		}, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"counters over TCP are plain although tags are enabled": {func(c *statsd.Config) {
			c.Tagged, c.Protocol = true, "tcp"
		}, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"mogrifiers change names and add tags": {
			func(c *statsd.Config) { c.Tagged, c.ExtraTags, c.Mogrifiers = true, []string{"zone:eu"}, two },
			[]string{
				"limits.over_limit:5|c|#zone:eu,domain:shop,descriptor:user_a_b_c",
				"otherratelimit.ratelimit:2|c|#zone:eu",
			},
		},
		"only the first mogrifier that matches is used": {
			func(c *statsd.Config) { c.Tagged, c.Mogrifiers = true, []statsd.MogrifierConfig{two[1], two[0]} },
			[]string{"otherratelimit.ratelimit:2|c", "otherratelimit.ratelimit:5|c"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, counts := newDaemon(t), newTestCounts("user_a,b|c")
			counts.series[0].Hits.Over.Add(5)
			counts.stats.StoreErrors.Add(2)
			c := d.daemonConfig()
			test.change(&c)
			startSink(t, openSink(t, c, counts))()
			got := d.nextLines(t)
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("the daemon received %q, want %q", got, test.want)
			}
		})
	}
}

func TestResponseTimes(t *testing.T) {
	d, counts := newDaemon(t), newTestCounts()
	counts.RecordCall(1500 * time.Microsecond)
	c := d.daemonConfig()
	c.ExtraTags = []string{"zone:eu"}
	startSink(t, openSink(t, c, counts))()
	want := []string{
		"ratelimit_server.ShouldRateLimit.total_requests.__zone=eu:1|c",
		"ratelimit_server.ShouldRateLimit.response_time.__zone=eu:1.5|ms",
	}
	if got := d.nextLines(t); !slices.Equal(got, want) {
		t.Errorf("the daemon received %q, want %q", got, want)
	}
}

// TestSampledResponseTimes checks that a sample of many response times is sent, with its rate.
func TestSampledResponseTimes(t *testing.T) {
	d, counts := newDaemon(t), newTestCounts()
	for range 2000 {
		counts.RecordCall(time.Millisecond)
	}
	startSink(t, openSink(t, d.daemonConfig(), counts))()
	times := 0
	for times < 512 {
		for _, line := range d.nextLines(t) {
			if strings.HasPrefix(line, "ratelimit_server.ShouldRateLimit.response_time:") {
				if line != "ratelimit_server.ShouldRateLimit.response_time:1|ms|@0.256000" {
					t.Fatalf("the response time is sent as %q", line)
				}
				times++
			}
		}
	}
}

// TestNamesTooLong checks that names that do not fit in a packet are left out, and that the log has
// one line about them.
func TestNamesTooLong(t *testing.T) {
	d, counts := newDaemon(t), newTestCounts(strings.Repeat("x", maxPacket), "y", strings.Repeat("z", maxPacket))
	for _, s := range counts.series {
		s.Hits.Refused.Add(1)
	}
	log, logged := test.NewNullLogger()
	s, err := statsd.ToDaemon(d.daemonConfig(), counts.NewChanges(), logrus.NewEntry(log))
	must.Succeed(t, err)
	startSink(t, s)()
	if got := d.nextLines(t); len(got) != 1 || !strings.Contains(got[0], ".y.") {
		t.Errorf("the daemon received %q, want one line about y", got)
	}
	if n := len(logged.AllEntries()); n != 1 {
		t.Errorf("the log has %d lines, want 1", n)
	}
}

// TestDaemonStartsLater checks that the sink logs nothing while the daemon does not listen, and
// that a daemon that starts later receives the counts from then on.
func TestDaemonStartsLater(t *testing.T) {
	d, counts := newDaemon(t), newTestCounts("k")
	c := d.daemonConfig()
	_ = d.conn.Close()
	c.FlushInterval = 10 * time.Millisecond
	log, logged := test.NewNullLogger()
	changes := counts.NewChanges()
	s, err := statsd.ToDaemon(c, changes, logrus.NewEntry(log))
	must.Succeed(t, err)
	stop := startSink(t, s)
	defer stop()
	conn, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(c.Port))
	must.Succeed(t, err)
	defer func() { _ = conn.Close() }()
	must.Succeed(t, conn.SetReadDeadline(time.Now().Add(await.Timeout)))
	counts.series[0].Hits.Refused.Add(1)
	if _, _, err := conn.ReadFrom(make([]byte, maxPacket)); err != nil {
		t.Error(err)
	}
	if n := len(logged.AllEntries()); n != 0 {
		t.Errorf("the log has the line %q, want no line", logged.LastEntry().Message)
	}
}

func TestToWriter(t *testing.T) {
	counts := newTestCounts("k")
	counts.series[0].Hits.Refused.Add(4)
	counts.RecordCall(time.Second)
	var out bytes.Buffer
	c := statsd.Config{FlushInterval: time.Minute, Tagged: true, ExtraTags: []string{"zone:eu"}}
	s, err := statsd.ToWriter(c, counts.NewChanges(), &out, discardLog())
	must.Succeed(t, err)
	startSink(t, s)()
	want := "ratelimit_server.ShouldRateLimit.total_requests.__zone=eu:1|c\n" +
		"ratelimit.service.rate_limit.shop.k.total_hits.__zone=eu:4|c\n"
	if out.String() != want {
		t.Errorf("the sink wrote %q, want %q", &out, want)
	}
}
