package statsd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestConfigErrors checks that Validate refuses each wrong value with an error that begins with the
// name of its variable.
func TestConfigErrors(t *testing.T) {
	good := func() statsd.Config {
		c := statsd.Config{
			Host: "localhost", Port: 8125, Protocol: "udp", FlushInterval: 10 * time.Second, MogrifierNames: []string{
				"TAG",
			},
		}
		c.ReadMogrifiers(func(variable string) string {
			return map[string]string{
				"TAGGED_METRICSD_MOGRIFIER_TAG_PATTERN": `^a\.(.*)$`,
				"TAGGED_METRICSD_MOGRIFIER_TAG_NAME":    "b",
				"TAGGED_METRICSD_MOGRIFIER_TAG_TAGS":    "rest:$1",
			}[variable]
		})
		return c
	}
	must.Succeed(t, good().Validate())
	for name, change := range map[string]func(*statsd.Config){
		"METRICSD_HOST: empty":       func(c *statsd.Config) { c.Host = "" },
		"METRICSD_PORT: zero":        func(c *statsd.Config) { c.Port = 0 },
		"METRICSD_PORT: too high":    func(c *statsd.Config) { c.Port = 65536 },
		"METRICSD_PROTOCOL: empty":   func(c *statsd.Config) { c.Protocol = "" },
		"METRICSD_PROTOCOL: unknown": func(c *statsd.Config) { c.Protocol = "unix" },
		"STATS_FLUSH_INTERVAL: zero": func(c *statsd.Config) { c.FlushInterval = 0 },
		"STATS_FLUSH_INTERVAL: negative": func(c *statsd.Config) {
			c.FlushInterval = -time.Second
		},
		"STATS_FLUSH_INTERVAL: longer than the life of a series": func(c *statsd.Config) {
			c.FlushInterval = time.Hour
		},
		"EXTRA_TAGS: no colon": func(c *statsd.Config) {
			c.ExtraTags = []string{"a"}
		},
		"EXTRA_TAGS: no key": func(c *statsd.Config) {
			c.ExtraTags = []string{":a"}
		},
		"EXTRA_TAGS: duplicate key": func(c *statsd.Config) {
			c.ExtraTags = []string{"a:1", "a:2"}
		},
		"EXTRA_TAGS: forbidden character in a key": func(c *statsd.Config) {
			c.ExtraTags = []string{"a|b:1"}
		},
		"TAGGED_METRICSD_MOGRIFIER_TAG_PATTERN: empty": func(c *statsd.Config) {
			c.Mogrifiers[0].Pattern = ""
		},
		"TAGGED_METRICSD_MOGRIFIER_TAG_PATTERN: malformed": func(c *statsd.Config) {
			c.Mogrifiers[0].Pattern = "("
		},
		"TAGGED_METRICSD_MOGRIFIER_TAG_NAME: empty": func(c *statsd.Config) { c.Mogrifiers[0].Name = "" },
		"TAGGED_METRICSD_MOGRIFIER_TAG_NAME: unknown group": func(c *statsd.Config) {
			c.Mogrifiers[0].Name = "$2"
		},
		"TAGGED_METRICSD_MOGRIFIER_TAG_TAGS: no colon": func(c *statsd.Config) { c.Mogrifiers[0].Tags = "x" },
		"TAGGED_METRICSD_MOGRIFIER_TAG_TAGS: unknown group": func(c *statsd.Config) {
			c.Mogrifiers[0].Tags = "x:$9"
		},
	} {
		c := good()
		change(&c)
		variable, _, _ := strings.Cut(name, ":")
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), variable+": ") {
			t.Errorf("%s: error is %v, want an error that begins with the name of the variable", name, err)
		}
	}
}
