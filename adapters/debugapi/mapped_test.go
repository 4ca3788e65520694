package debugapi

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// values is a decider that has series by value only.
type values struct {
	stats  decide.Stats
	series []*decide.Series
}

func (*values) Current() *ruleset.Set              { return nil }
func (*values) Loaded() uint64                     { return 0 }
func (*values) Refused() uint64                    { return 0 }
func (v *values) Stats() *decide.Stats             { return &v.stats }
func (v *values) Series() iter.Seq[*decide.Series] { return slices.Values(v.series) }
func (*values) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

// set replaces the series by n series of values from a number on.
func (v *values) set(from, n int) {
	v.series = nil
	for i := range n {
		name := "user_" + strconv.Itoa(from+i)
		one := &decide.Series{Domain: "shop", Path: name, Levels: []string{name}, Hits: &ratelimit.Hits{}}
		one.Hits.Total.Add(1)
		v.series = append(v.series, one)
	}
}

func openMapped(t testing.TB, v *values, mapping string) *mappedMetrics {
	t.Helper()
	m := &mapper.MetricMapper{}
	if err := m.InitFromYAMLString(mapping); err != nil {
		t.Fatal(err)
	}
	named, err := newMappedMetrics(m, statistics.New(v, v, statistics.Options{}), logrus.NewEntry(logrus.New()))
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// shown returns how many metrics are shown.
func (m *mappedMetrics) shown() int {
	to := make(chan prometheus.Metric, 1<<20)
	m.collect(to)
	return len(to)
}

const byUser = `mappings:
  - {match: "ratelimit.service.rate_limit.*.*.*", name: "hits_$2", labels: {domain: $1}}
  - {match: "ratelimit_server.*.response_time", name: dropped, action: drop}
`

// TestSeriesOfForgottenValuesGo: callers bring new values for as long as the service runs.
func TestSeriesOfForgottenValuesGo(t *testing.T) {
	v, now := &values{}, time.Unix(0, 0)
	m := openMapped(t, v, byUser)
	m.now = func() time.Time { return now }
	for hour := range 5 {
		v.set(1000*hour, 1000)
		if got := m.shown(); got < 1000 || got > 7000 {
			t.Errorf("hour %d: %d metrics are shown", hour, got)
		}
		now = now.Add(61 * time.Minute)
	}
	v.set(0, 1)
	if got := m.shown(); got > 20 || len(m.metrics) > 20 {
		t.Errorf("at the end %d metrics are shown, %d are known", got, len(m.metrics))
	}
}

func TestTimeToLive(t *testing.T) {
	v, now := &values{}, time.Unix(0, 0)
	m := openMapped(t, v, strings.Replace(byUser, "labels:", "ttl: 1m, labels:", 1))
	m.now = func() time.Time { return now }
	v.set(0, 3)
	if got := m.shown(); got != 3 {
		t.Errorf("%d metrics are shown, want 3", got)
	}
	v.series[0].Hits.Total.Add(1)
	now = now.Add(time.Minute)
	if got := m.shown(); got != 3 {
		t.Errorf("a minute later %d metrics are shown, want 3", got)
	}
	now = now.Add(time.Second)
	if got := m.shown(); got != 1 {
		t.Errorf("then %d metrics are shown, want 1", got)
	}
}

func BenchmarkMapped(b *testing.B) {
	for name, mapping := range map[string]string{
		"glob": byUser,
		"regex": `mappings:
  - {match: 'ratelimit\.service\.rate_limit\.([^.]*)\.([^.]*)\.over_limit', match_type: regex, name: over, labels: {domain: $1, key1: $2}}
  - {match: 'ratelimit\.service\.rate_limit\.([^.]*)\.([^.]*)\.total_hits', match_type: regex, name: hits, labels: {domain: $1, key1: $2}}
`,
	} {
		b.Run(name, func(b *testing.B) {
			v := &values{}
			m := openMapped(b, v, mapping)
			v.set(0, 10_000)
			for b.Loop() {
				for _, one := range v.series {
					one.Hits.Total.Add(1)
				}
				m.shown()
			}
		})
	}
}
