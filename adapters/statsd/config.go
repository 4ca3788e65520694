package statsd

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// Config is what an operator may set of sending statistics.
type Config struct {
	Daemon         bool          `env:"USE_METRICSD" envDefault:"true" desc:"send statistics to a metrics daemon (statsd) over UDP; false writes them to standard output, unless USE_TAGGED_METRICSD or USE_PROMETHEUS is true"`
	Tagged         bool          `env:"USE_TAGGED_METRICSD" envDefault:"false" desc:"send statistics in the tagged form (DogStatsD), whatever USE_METRICSD says"`
	Host           string        `env:"METRICSD_HOST" envDefault:"localhost" desc:"host of the metrics daemon"`
	Port           int           `env:"METRICSD_PORT" envDefault:"8125" desc:"UDP port of the metrics daemon"`
	FlushInterval  time.Duration `env:"STATS_FLUSH_INTERVAL" envDefault:"10s" desc:"how often statistics are sent, 10ms to 30m"`
	ExtraTags      []string      `env:"EXTRA_TAGS" desc:"tags of all statistics that are sent or written, as k1:v1,k2:v2"`
	MogrifierNames []string      `env:"TAGGED_METRICSD_MOGRIFIERS" desc:"names of mogrifiers, first match wins; each has TAGGED_METRICSD_MOGRIFIER_<NAME>_PATTERN, _NAME and _TAGS"`

	// Mogrifiers are the variables of each of MogrifierNames.
	Mogrifiers []MogrifierConfig `env:"-"`
}

// The bounds of FlushInterval. Series of statistics that nobody hits live for
// an hour at least, so they are sent before they go.
const (
	minFlush = 10 * time.Millisecond
	maxFlush = 30 * time.Minute
)

// ReadMogrifiers reads the variables of the mogrifiers that are named; lookup
// returns the value of a variable, empty for none.
func (c *Config) ReadMogrifiers(lookup func(variable string) string) {
	c.Mogrifiers = nil
	for _, name := range c.MogrifierNames {
		c.Mogrifiers = append(c.Mogrifiers, readMogrifier(name, lookup))
	}
}

// Validate names the first setting that is malformed.
func (c Config) Validate() error {
	switch {
	case c.Host == "":
		return fmt.Errorf("METRICSD_HOST: must not be empty")
	case c.Port < 1 || c.Port > 65535:
		return fmt.Errorf("METRICSD_PORT: %d is not a port, 1 to 65535", c.Port)
	case c.FlushInterval < minFlush || c.FlushInterval > maxFlush:
		return fmt.Errorf("STATS_FLUSH_INTERVAL: %v is not %v to %v", c.FlushInterval, minFlush, maxFlush)
	}
	if _, err := parseTags(c.ExtraTags); err != nil {
		return fmt.Errorf("EXTRA_TAGS: %w", err)
	}
	_, err := newMogrifiers(c.Mogrifiers)
	return err
}

// ToDaemon tells whether statistics go to a metrics daemon, in either form.
func (c Config) ToDaemon() bool { return c.Daemon || c.Tagged }

func (c Config) address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }
