package debugapi

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Rules are the rules in force and how loading them went; reload.Rules is one.
type Rules interface {
	Current() *ruleset.Set
	Loaded() uint64
	Refused() uint64
}

// Decider has the counts of decisions; decide.Decider is one.
type Decider interface {
	Stats() *decide.Stats
	Series() iter.Seq[decide.Series]
}

// method is the one method that calls are counted by.
const method = "ShouldRateLimit"

// Metrics gathers the statistics of the rate limit service when they are asked
// for. It is safe for concurrent use.
type Metrics struct {
	rules    Rules
	decider  Decider
	registry *prometheus.Registry
	took     prometheus.Observer
	calls    atomic.Uint64
	nanos    atomic.Uint64
}

// NewMetrics returns the statistics of rules and decisions, and of the process.
func NewMetrics(r Rules, d Decider) *Metrics {
	m := &Metrics{rules: r, decider: d, registry: prometheus.NewRegistry()}
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds",
		Help: "How long rate limit calls took.",
		// From 50 µs (decisions 3.6).
		Buckets: []float64{
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
		},
	}, []string{"grpc_method"})
	m.took = times.WithLabelValues(method)
	m.registry.MustRegister(m, times, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Registry takes further collectors.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Answered counts a call of ShouldRateLimit.
func (m *Metrics) Answered(took time.Duration) {
	m.calls.Add(1)
	m.nanos.Add(uint64(max(took, 0))) //nolint:gosec // not negative
	m.took.Observe(took.Seconds())
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// counter is a count of the service itself, with its name as statistics have it
// and as Prometheus has it (decisions 3.6).
type counter struct {
	name   string
	metric string
	labels prometheus.Labels
	help   string
	value  uint64
}

func (m *Metrics) counters() []counter {
	s := m.decider.Stats()
	failures := func(kind string, value uint64) counter {
		return counter{
			"ratelimit.service.call.should_rate_limit." + kind, "ratelimit_service_should_rate_limit_error",
			prometheus.Labels{"err_type": kind}, "Rate limit calls that failed.", value,
		}
	}
	fallbacks := func(kind string, value uint64) counter {
		return counter{
			"ratelimit.service.call.should_rate_limit." + kind, "ratelimit_service_store_fallback",
			prometheus.Labels{"mode": kind}, "Calls answered by the failure mode while the store failed.", value,
		}
	}
	return []counter{
		{"ratelimit.service.config_load_success", "ratelimit_service_config_load_success", nil, "Configurations that came into force.", m.rules.Loaded()},
		{"ratelimit.service.config_load_error", "ratelimit_service_config_load_error", nil, "Configurations that were refused.", m.rules.Refused()},
		{"ratelimit.service.global_shadow_mode", "ratelimit_service_global_shadow_mode", nil, "Over-limit results that SHADOW_MODE let pass.", s.GlobalShadow.Load()},
		failures("store_error", s.StoreErrors.Load()),
		failures("service_error", s.ServiceErrors.Load()),
		fallbacks("failed_open", s.FailedOpen.Load()),
		fallbacks("failed_closed", s.FailedClosed.Load()),
		fallbacks("counted_locally", s.CountedLocally.Load()),
		{
			"ratelimit_server." + method + ".total_requests", "ratelimit_service_total_requests",
			prometheus.Labels{"grpc_method": method}, "Rate limit calls.", m.calls.Load(),
		},
	}
}

// stat is one statistic of a rule or series.
type stat struct {
	name string
	help string
	of   func(*ratelimit.Hits) uint64
}

func stats() []stat {
	return []stat{
		{"total_hits", "All hits.", func(h *ratelimit.Hits) uint64 { return h.Total.Load() }},
		{"over_limit", "Hits over the limit.", func(h *ratelimit.Hits) uint64 { return h.Over.Load() }},
		{"near_limit", "Hits over the near-limit ratio and within the limit.", func(h *ratelimit.Hits) uint64 { return h.Near.Load() }},
		{"within_limit", "Hits answered as OK.", func(h *ratelimit.Hits) uint64 { return h.Within.Load() }},
		{"shadow_mode", "Hits over the limit that shadow mode let pass.", func(h *ratelimit.Hits) uint64 { return h.Shadow.Load() }},
	}
}

// labels tell rules apart: the domain, the first two levels as dashboards of
// the Envoy service have them, and the whole path.
type labels struct{ domain, key1, key2, rule string }

func (l labels) values() []string { return []string{l.domain, l.key1, l.key2, l.rule} }

func labelsOf(domain ratelimit.Domain, path string, levels []string) labels {
	l := labels{domain: text(string(domain)), rule: text(path)}
	if len(levels) > 0 {
		l.key1 = text(levels[0])
	}
	if len(levels) > 1 {
		l.key2 = text(levels[1])
	}
	return l
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// hits returns the hits of all rules and series. Those whose names read the
// same stand together.
func (m *Metrics) hits() map[labels][]*ratelimit.Hits {
	all := map[labels][]*ratelimit.Hits{}
	add := func(l labels, h *ratelimit.Hits) {
		if !slices.Contains(all[l], h) {
			all[l] = append(all[l], h)
		}
	}
	if set := m.rules.Current(); set != nil {
		for r := range set.Rules() {
			add(labelsOf(r.Domain, r.Path, r.Levels), r.Hits)
		}
	}
	for s := range m.decider.Series() {
		add(labelsOf(s.Domain, s.Path, s.Levels), s.Hits)
	}
	return all
}

func sum(hits []*ratelimit.Hits, of func(*ratelimit.Hits) uint64) uint64 {
	total := uint64(0)
	for _, h := range hits {
		total += of(h)
	}
	return total
}

// Describe implements prometheus.Collector. What is collected depends on the
// rules, so nothing is promised.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.counters() {
		desc := prometheus.NewDesc(c.metric, c.help, nil, c.labels)
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(c.value))
	}
	all := m.hits()
	for _, s := range stats() {
		desc := prometheus.NewDesc("ratelimit_service_rate_limit_"+s.name, s.help, []string{"domain", "key1", "key2", "rule"}, nil)
		for l, hits := range all {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(sum(hits, s.of)), l.values()...)
		}
	}
}

// show prints all counters as "name: value" lines, sorted.
func (m *Metrics) show(w http.ResponseWriter, _ *http.Request) {
	plain(w)
	var lines []string
	add := func(name string, value uint64) {
		lines = append(lines, fmt.Sprintf("%s: %d\n", oneLine(name), value))
	}
	for _, c := range m.counters() {
		add(c.name, c.value)
	}
	add("ratelimit_server."+method+".response_time_total_us", m.nanos.Load()/uint64(time.Microsecond))
	for l, hits := range m.hits() {
		for _, s := range stats() {
			add("ratelimit.service.rate_limit."+statName(l.domain)+"."+statName(l.rule)+"."+s.name, sum(hits, s.of))
		}
	}
	slices.Sort(lines)
	_, _ = w.Write([]byte(strings.Join(lines, ""))) // the client may have gone
}

// statName replaces what separates names from values in lines of statistics.
func statName(s string) string {
	return strings.NewReplacer(":", "_", "|", "_").Replace(s)
}
