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
	"github.com/tollgate-dev/tollgate/test/must"
)

// fakeStatistics has no rules, only series of descriptor values.
type fakeStatistics struct {
	stats  decide.Stats
	series []*decide.Series
}

func (*fakeStatistics) Current() *ruleset.Set              { return nil }
func (*fakeStatistics) Loaded() uint64                     { return 0 }
func (*fakeStatistics) Refused() uint64                    { return 0 }
func (v *fakeStatistics) Stats() *decide.Stats             { return &v.stats }
func (v *fakeStatistics) Series() iter.Seq[*decide.Series] { return slices.Values(v.series) }
func (*fakeStatistics) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

// setSeries replaces the series by n new ones. Their names contain the numbers from,
// from+1 and so on.
func (v *fakeStatistics) setSeries(from, n int) {
	v.series = nil
	for i := range n {
		name := "user_" + strconv.Itoa(from+i)
		series := &decide.Series{Domain: "shop", Path: name, Levels: []string{name}, Hits: &ratelimit.Hits{}}
		series.Hits.Refused.Add(1)
		v.series = append(v.series, series)
	}
}

func openMapped(t testing.TB, v *fakeStatistics, mapping string) *mappedMetrics {
	t.Helper()
	m := &mapper.MetricMapper{}
	must.Succeed(t, m.InitFromYAMLString(mapping))
	named, err := newMappedMetrics(m, statistics.New(v, v, statistics.Options{}), logrus.NewEntry(logrus.New()))
	must.Succeed(t, err)
	return named
}

// countMetrics returns the number of metrics that collect sends.
func (m *mappedMetrics) countMetrics() int {
	to := make(chan prometheus.Metric, 1<<20)
	m.collect(to)
	return len(to)
}

const byUser = `mappings:
  - {match: "ratelimit.service.rate_limit.*.*.*", name: "hits_$2", labels: {domain: $1}}
  - {match: "ratelimit_server.*.response_time", name: dropped, action: drop}
`

// TestOldSeriesAreRemoved checks that metrics of series that no longer exist are removed, because
// new descriptor values appear for as long as the service runs.
func TestOldSeriesAreRemoved(t *testing.T) {
	v, now := &fakeStatistics{}, time.Unix(0, 0)
	m := openMapped(t, v, byUser)
	m.now = func() time.Time { return now }
	for hour := range 5 {
		v.setSeries(1000*hour, 1000)
		if got := m.countMetrics(); got < 1000 || got > 7000 {
			t.Errorf("hour %d: %d metrics are shown", hour, got)
		}
		now = now.Add(61 * time.Minute)
	}
	v.setSeries(0, 1)
	if got := m.countMetrics(); got > 20 || len(m.metrics) > 20 {
		t.Errorf("at the end %d metrics are shown and %d are kept, want at most 20", got, len(m.metrics))
	}
}

func TestTimeToLive(t *testing.T) {
	v, now := &fakeStatistics{}, time.Unix(0, 0)
	m := openMapped(t, v, strings.Replace(byUser, "labels:", "ttl: 1m, labels:", 1))
	m.now = func() time.Time { return now }
	v.setSeries(0, 3)
	if got := m.countMetrics(); got != 3 {
		t.Errorf("%d metrics are shown, want 3", got)
	}
	v.series[0].Hits.Refused.Add(1)
	now = now.Add(time.Minute)
	if got := m.countMetrics(); got != 3 {
		t.Errorf("a minute later %d metrics are shown, want 3", got)
	}
	now = now.Add(time.Second)
	if got := m.countMetrics(); got != 1 {
		t.Errorf("after the time to live %d metrics are shown, want 1", got)
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
			v := &fakeStatistics{}
			m := openMapped(b, v, mapping)
			v.setSeries(0, 10_000)
			for b.Loop() {
				for _, series := range v.series {
					series.Hits.Refused.Add(1)
				}
				m.countMetrics()
			}
		})
	}
}
