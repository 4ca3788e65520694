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
)

// maxPacket is the bound that packets keep.
const maxPacket = 1432

// counts are statistics that the test makes up.
type counts struct {
	*statistics.Statistics
	stats  decide.Stats
	series []*decide.Series
}

func (c *counts) Current() *ruleset.Set            { return nil }
func (c *counts) Loaded() uint64                   { return 0 }
func (c *counts) Refused() uint64                  { return 0 }
func (c *counts) Stats() *decide.Stats             { return &c.stats }
func (c *counts) Series() iter.Seq[*decide.Series] { return slices.Values(c.series) }
func (*counts) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

func newCounts(paths ...string) *counts {
	c := &counts{}
	for _, path := range paths {
		c.series = append(c.series, &decide.Series{Domain: "shop", Path: path, Hits: &ratelimit.Hits{}})
	}
	c.Statistics = statistics.New(c, c, statistics.Options{})
	return c
}

// daemon is a metrics daemon that only listens.
type daemon struct {
	conn net.PacketConn
	got  chan string // packets
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	return listen(t, "127.0.0.1:0")
}

func listen(t *testing.T, address string) *daemon {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.UDPConn).SetReadBuffer(8 << 20); err != nil {
		t.Fatal(err)
	}
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

func (d *daemon) config() statsd.Config {
	return statsd.Config{
		Daemon: true, Protocol: "udp", Host: "127.0.0.1", Port: d.conn.LocalAddr().(*net.UDPAddr).Port, FlushInterval: 30 * time.Minute,
	}
}

// lines returns the lines of the next packet.
func (d *daemon) lines(t *testing.T) []string {
	t.Helper()
	select {
	case packet := <-d.got:
		if len(packet) > maxPacket {
			t.Errorf("a packet has %d bytes", len(packet))
		}
		return strings.Split(packet, "\n")
	case <-time.After(20 * time.Second):
		t.Fatal("no packet came")
		return nil
	}
}

// await takes packets until the counters of the names that begin so come to what is wanted.
func (d *daemon) await(t *testing.T, prefix string, want int) {
	t.Helper()
	for got := 0; got != want; {
		for _, line := range d.lines(t) {
			name, rest, _ := strings.Cut(line, ":")
			value, ok := strings.CutSuffix(rest, "|c")
			by, err := strconv.Atoi(value)
			if !ok || err != nil {
				t.Fatalf("line %q", line)
			}
			if strings.HasPrefix(name, prefix) {
				got += by
			}
		}
		if got > want {
			t.Fatalf("%s came to %d, want %d", prefix, got, want)
		}
	}
}

func silent() *logrus.Entry {
	log, _ := test.NewNullLogger()
	return logrus.NewEntry(log)
}

// start runs a sink; the function that it returns ends it.
func start(t *testing.T, s *statsd.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func toDaemon(t *testing.T, c statsd.Config, counts *counts) *statsd.Sink {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := statsd.ToDaemon(c, counts.NewChanges(), silent())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDifferences: what grew is sent at each interval, and the rest at the end.
func TestDifferences(t *testing.T) {
	d, counts := newDaemon(t), newCounts("user_ada")
	c := d.config()
	c.FlushInterval = 10 * time.Millisecond
	stop := start(t, toDaemon(t, c, counts))
	hits := counts.series[0].Hits
	const name = "ratelimit.service.rate_limit.shop.user_ada.total_hits"
	for _, by := range []uint64{3, 1, 7} {
		hits.Total.Add(by)
		d.await(t, name, int(by))
	}
	stop()
	if len(d.got) > 0 {
		t.Errorf("%q was sent though nothing grew", <-d.got)
	}
	stop = start(t, toDaemon(t, d.config(), counts)) // from the start again, and with nothing sent before the end
	stop()
	d.await(t, name, 11)
}

// TestAddresses: a name, whose address of IPv4 counts, and an address of IPv6.
func TestAddresses(t *testing.T) {
	for address, host := range map[string]string{"127.0.0.1:0": "localhost", "[::1]:0": "::1"} {
		probe, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Logf("there is no %s here: %v", address, err)
			continue
		}
		_ = probe.Close()
		d, counts := listen(t, address), newCounts("k")
		counts.series[0].Hits.Total.Add(1)
		c := d.config()
		c.Host = host
		start(t, toDaemon(t, c, counts))()
		d.await(t, "ratelimit.service.rate_limit.shop.k.total_hits", 1)
	}
}

// TestManyCounters: a flush of many packets arrives whole.
func TestManyCounters(t *testing.T) {
	const many = 20_000
	paths := make([]string, many)
	for i := range paths {
		paths[i] = fmt.Sprintf("user_%05d", i)
	}
	d, counts := newDaemon(t), newCounts(paths...)
	for i, s := range counts.series {
		s.Hits.Near.Add(uint64(i % 3))
		s.Hits.Over.Add(1)
	}
	start(t, toDaemon(t, d.config(), counts))()
	d.await(t, "ratelimit.service.rate_limit.shop.user_", many+many-1)
}

// TestForms looks at the lines of one flush in each form.
func TestForms(t *testing.T) {
	two := []statsd.MogrifierConfig{
		{Variable: "A", Pattern: `^ratelimit\.service\.rate_limit\.(.*)\.(.*)\.(.*)$`, Name: "limits.$3", Tags: "domain:$1,descriptor:$2"},
		{Variable: "B", Pattern: `^ratelimit`, Name: "other$0.$0", Tags: ""},
	}
	tests := map[string]struct {
		change func(*statsd.Config)
		want   []string
	}{
		"plain": {func(*statsd.Config) {}, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"plain with tags": {
			func(c *statsd.Config) { c.ExtraTags = []string{"zone:eu", "build:1.2:3", "none:"} },
			[]string{
				"ratelimit.service.call.should_rate_limit.store_error.__build=1_2_3.__zone=eu:2|c",
				"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit.__build=1_2_3.__zone=eu:5|c",
			},
		},
		"plain knows no mogrifiers": {func(c *statsd.Config) { c.Mogrifiers = two }, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"tagged": {
			func(c *statsd.Config) {
				c.Tagged, c.Daemon, c.ExtraTags = true, false, []string{"zone:eu", "build:1.2:3"}
			},
			[]string{
				"ratelimit.service.call.should_rate_limit.store_error:2|c|#zone:eu,build:1.2:3",
				"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c|#zone:eu,build:1.2:3",
			},
		},
		"tagged, with the tags of Datadog's libraries": {
			func(c *statsd.Config) {
				c.Tagged, c.ExtraTags = true, []string{"zone:eu"}
				c.Entity, c.Env, c.Service, c.Version = "pod-1", "prod", "shop,limits", "1.2"
			},
			[]string{
				"ratelimit.service.call.should_rate_limit.store_error:2|c|#dd.internal.entity_id:pod-1,env:prod,service:shop_limits,version:1.2,zone:eu",
				"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c|#dd.internal.entity_id:pod-1,env:prod,service:shop_limits,version:1.2,zone:eu",
			},
		},
		"plain has no tags of Datadog's libraries": {func(c *statsd.Config) { c.Env = "prod" }, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"tagged is over UDP": {func(c *statsd.Config) { c.Tagged, c.Protocol = true, "tcp" }, []string{
			"ratelimit.service.call.should_rate_limit.store_error:2|c",
			"ratelimit.service.rate_limit.shop.user_a,b_c.over_limit:5|c",
		}},
		"mogrified": {
			func(c *statsd.Config) { c.Tagged, c.ExtraTags, c.Mogrifiers = true, []string{"zone:eu"}, two },
			[]string{
				"limits.over_limit:5|c|#zone:eu,domain:shop,descriptor:user_a_b_c",
				"otherratelimit.ratelimit:2|c|#zone:eu",
			},
		},
		"the first that matches counts": {
			func(c *statsd.Config) { c.Tagged, c.Mogrifiers = true, []statsd.MogrifierConfig{two[1], two[0]} },
			[]string{"otherratelimit.ratelimit:2|c", "otherratelimit.ratelimit:5|c"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, counts := newDaemon(t), newCounts("user_a,b|c")
			counts.series[0].Hits.Over.Add(5)
			counts.stats.StoreErrors.Add(2)
			c := d.config()
			test.change(&c)
			start(t, toDaemon(t, c, counts))()
			got := d.lines(t)
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestResponseTimes(t *testing.T) {
	d, counts := newDaemon(t), newCounts()
	counts.RecordCall(1500 * time.Microsecond)
	c := d.config()
	c.ExtraTags = []string{"zone:eu"}
	start(t, toDaemon(t, c, counts))()
	want := []string{
		"ratelimit_server.ShouldRateLimit.total_requests.__zone=eu:1|c",
		"ratelimit_server.ShouldRateLimit.response_time.__zone=eu:1.5|ms",
	}
	if got := d.lines(t); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSampledResponseTimes: of many calls a part is sent, which says what part.
func TestSampledResponseTimes(t *testing.T) {
	d, counts := newDaemon(t), newCounts()
	for range 2000 {
		counts.RecordCall(time.Millisecond)
	}
	start(t, toDaemon(t, d.config(), counts))()
	times := 0
	for times < 512 {
		for _, line := range d.lines(t) {
			if strings.HasPrefix(line, "ratelimit_server.ShouldRateLimit.response_time:") {
				if line != "ratelimit_server.ShouldRateLimit.response_time:1|ms|@0.256000" {
					t.Fatalf("line %q", line)
				}
				times++
			}
		}
	}
}

// TestNamesTooLong checks that too long names are left out, and that the log has one line about
// them.
func TestNamesTooLong(t *testing.T) {
	d, counts := newDaemon(t), newCounts(strings.Repeat("x", maxPacket), "y", strings.Repeat("z", maxPacket))
	for _, s := range counts.series {
		s.Hits.Total.Add(1)
	}
	log, said := test.NewNullLogger()
	s, err := statsd.ToDaemon(d.config(), counts.NewChanges(), logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)()
	if got := d.lines(t); len(got) != 1 || !strings.Contains(got[0], ".y.") {
		t.Errorf("got %q", got)
	}
	if n := len(said.AllEntries()); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
}

// TestNobodyListens does no harm: nothing is said, and a daemon that comes
// later gets what is counted then.
func TestNobodyListens(t *testing.T) {
	d, counts := newDaemon(t), newCounts("k")
	c := d.config()
	_ = d.conn.Close()
	c.FlushInterval = 10 * time.Millisecond
	log, said := test.NewNullLogger()
	changes := counts.NewChanges()
	s, err := statsd.ToDaemon(c, changes, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, s)
	defer stop()
	conn, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(c.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	counts.series[0].Hits.Total.Add(1)
	if _, _, err := conn.ReadFrom(make([]byte, maxPacket)); err != nil {
		t.Error(err)
	}
	if n := len(said.AllEntries()); n != 0 {
		t.Errorf("the log says %q", said.LastEntry().Message)
	}
}

func TestToWriter(t *testing.T) {
	counts := newCounts("k")
	counts.series[0].Hits.Total.Add(4)
	counts.RecordCall(time.Second)
	var out bytes.Buffer
	c := statsd.Config{FlushInterval: time.Minute, Tagged: true, ExtraTags: []string{"zone:eu"}}
	s, err := statsd.ToWriter(c, counts.NewChanges(), &out, silent())
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)()
	want := "ratelimit_server.ShouldRateLimit.total_requests.__zone=eu:1|c\n" +
		"ratelimit.service.rate_limit.shop.k.total_hits.__zone=eu:4|c\n"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", &out, want)
	}
}
