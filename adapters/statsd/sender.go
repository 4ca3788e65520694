package statsd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"
)

const (
	// maxPacket is the size in bytes of a packet that needs no fragmentation: an Ethernet frame
	// without the IP and UDP headers, and with room for a tunnel.
	maxPacket = 1432
	// maxValue is the room for the part of a line after the name, without tags.
	maxValue = len(":18446744073709551615|ms|@0.000001|#")
	// burst is the number of packets that are sent without a pause, so that the buffer of the
	// daemon can hold them.
	burst = 32
	pause = time.Millisecond
	// dialTimeout is the maximum time for looking up the name of the daemon.
	dialTimeout = 2 * time.Second
)

// packets sends packets to the metrics daemon.
type packets struct {
	conn net.Conn
	sent int
	err  error // the first failure
}

// dialUDP returns a sender to an address. It looks up the name each time, because the daemon may
// move. It fills packets before it sends them.
func dialUDP(ctx context.Context, address string) (statsd.Sender, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	// The address on which the daemon listens is unknown; most listen on IPv4.
	conn, err := dialer.DialContext(ctx, "udp4", address)
	if err != nil {
		conn, err = dialer.DialContext(ctx, "udp6", address)
	}
	if err != nil {
		return nil, fmt.Errorf("metrics daemon: %w", err)
	}
	// Full packets are sent at once, and the last one on Close, so no interval is needed.
	sender, err := statsd.NewBufferedSenderWithSender(&packets{conn: conn}, time.Hour, maxPacket)
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, fmt.Errorf("metrics daemon: %w", err)
	}
	return sender, nil
}

// Send sends a packet. A "connection refused" refers to an earlier packet and is not a failure,
// because the daemon may start later.
func (p *packets) Send(packet []byte) (int, error) {
	if p.sent++; p.sent%burst == 0 {
		time.Sleep(pause)
	}
	n, err := p.conn.Write(packet)
	if errors.Is(err, syscall.ECONNREFUSED) {
		n, err = p.conn.Write(packet)
	}
	if err != nil && p.err == nil && !errors.Is(err, syscall.ECONNREFUSED) {
		p.err = err
	}
	return n, err
}

// Close closes the socket and returns the first error.
func (p *packets) Close() error {
	return errors.Join(p.err, p.conn.Close())
}

// lineWriter writes one line for each statistic.
type lineWriter struct{ *bufio.Writer }

func newLineWriter(w io.Writer) lineWriter { return lineWriter{bufio.NewWriter(w)} }

// Send writes a line.
func (l lineWriter) Send(line []byte) (int, error) {
	n, err := l.Write(line)
	if err == nil {
		err = l.WriteByte('\n')
	}
	return n, err //nolint:wrapcheck // Close wraps the same error
}

// Close writes the buffered lines.
func (l lineWriter) Close() error {
	if err := l.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Config contains the settings for sending statistics.
type Config struct {
	Daemon         bool          `env:"USE_METRICSD" envDefault:"true" desc:"send statistics to a metrics daemon (statsd); false writes them to standard output, unless USE_TAGGED_METRICSD or USE_PROMETHEUS is true"`
	Tagged         bool          `env:"USE_TAGGED_METRICSD" envDefault:"false" desc:"send statistics in the tagged form (DogStatsD), regardless of USE_METRICSD"`
	Host           string        `env:"METRICSD_HOST" envDefault:"localhost" desc:"host of the metrics daemon"`
	Port           int           `env:"METRICSD_PORT" envDefault:"8125" desc:"port of the metrics daemon"`
	Protocol       string        `env:"METRICSD_PROTOCOL" envDefault:"udp" desc:"protocol to the metrics daemon: udp or tcp. The default is tcp if the daemon is set by USE_STATSD, STATSD_HOST or STATSD_PORT, the names of the Envoy rate limit service; USE_TAGGED_METRICSD always uses udp"`
	FlushInterval  time.Duration `env:"STATS_FLUSH_INTERVAL" envDefault:"10s" desc:"how often statistics are sent, 10ms to 30m"`
	ExtraTags      []string      `env:"EXTRA_TAGS" desc:"tags of all statistics that are sent or written, in the form k1:v1,k2:v2"`
	MogrifierNames []string      `env:"TAGGED_METRICSD_MOGRIFIERS" desc:"names of mogrifiers, first match wins; each has TAGGED_METRICSD_MOGRIFIER_<NAME>_PATTERN, _NAME and _TAGS"`
	Entity         string        `env:"DD_ENTITY_ID" desc:"tag dd.internal.entity_id of the tagged form: the pod, whose tags Datadog then adds"`
	Env            string        `env:"DD_ENV" desc:"tag env of the tagged form"`
	Service        string        `env:"DD_SERVICE" desc:"tag service of the tagged form"`
	Version        string        `env:"DD_VERSION" desc:"tag version of the tagged form"`

	// Mogrifiers contains the variables of each name in MogrifierNames.
	Mogrifiers []MogrifierConfig `env:"-"`
}

// Bounds of FlushInterval. Statistics of a key without new hits are kept for at least an hour, so
// they are always sent before they are removed.
const (
	MinFlushInterval = 10 * time.Millisecond
	MaxFlushInterval = 30 * time.Minute
)

// ReadMogrifiers reads the variables of the mogrifiers in MogrifierNames. The function lookup
// returns the value of a variable, or an empty string.
func (c *Config) ReadMogrifiers(lookup func(variable string) string) {
	c.Mogrifiers = nil
	for _, name := range c.MogrifierNames {
		c.Mogrifiers = append(c.Mogrifiers, readMogrifier(name, lookup))
	}
}

// Validate returns an error that names the first malformed setting.
func (c Config) Validate() error {
	switch {
	case c.Host == "":
		return fmt.Errorf("METRICSD_HOST: must not be empty")
	case c.Port < 1 || c.Port > 65535:
		return fmt.Errorf("METRICSD_PORT: must be a port from 1 to 65535, not %d", c.Port)
	case !slices.Contains([]string{"udp", "udp4", "udp6", "tcp", "tcp4", "tcp6"}, c.Protocol):
		return fmt.Errorf("METRICSD_PROTOCOL: must be udp or tcp, not %q", c.Protocol)
	case c.FlushInterval < MinFlushInterval || c.FlushInterval > MaxFlushInterval:
		return fmt.Errorf("STATS_FLUSH_INTERVAL: must be %v to %v, not %v", MinFlushInterval, MaxFlushInterval, c.FlushInterval)
	}
	if _, err := parseTags(c.ExtraTags); err != nil {
		return fmt.Errorf("EXTRA_TAGS: %w", err)
	}
	_, err := newMogrifiers(c.Mogrifiers)
	return err
}

// ToDaemon reports whether statistics are sent to a metrics daemon, in the plain or the tagged
// form.
func (c Config) ToDaemon() bool { return c.Daemon || c.Tagged }

// UsesTCP reports whether the metrics daemon, if any, is reached over TCP. The tagged form always
// uses UDP.
func (c Config) UsesTCP() bool { return !c.Tagged && strings.HasPrefix(c.Protocol, "tcp") }

// datadogTags returns the tags that the Datadog libraries add to all statistics.
func (c Config) datadogTags() []statsd.Tag {
	var tags []statsd.Tag
	for _, tag := range []statsd.Tag{
		{"dd.internal.entity_id", c.Entity}, {"env", c.Env}, {"service", c.Service}, {"version", c.Version},
	} {
		if tag[1] != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

func (c Config) daemonAddress() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }
