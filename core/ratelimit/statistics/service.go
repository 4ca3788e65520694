package statistics

import (
	"maps"
	"slices"
)

// Counter is a count of the service itself, since the start.
type Counter struct {
	Name  string // with dots
	Value uint64
	// Metric, Label and LabelValue are the name for Prometheus; Label is optional. Counters of one
	// metric have the same Help.
	Metric, Label, LabelValue string
	Help                      string
}

// Service returns the counters of the service itself.
func (s *Statistics) Service() []Counter {
	d := s.decider.Stats()
	list := []Counter{
		serviceCounter("config_load_success", "Configurations that came into force.", s.rules.Loaded()),
		serviceCounter("config_load_error", "Configurations that were refused.", s.rules.Refused()),
		serviceCounter("global_shadow_mode", "Over-limit results that shadow mode let pass.", d.GlobalShadow.Load()),
		failureCounter(s.options.storeErrorName(), d.StoreErrors.Load()),
		failureCounter("service_error", d.ServiceErrors.Load()),
		fallbackCounter("failed_open", d.FailedOpen.Load()),
		fallbackCounter("failed_closed", d.FailedClosed.Load()),
		fallbackCounter("counted_locally", d.CountedLocally.Load()),
		{
			Name: serverPrefix + "total_requests", Value: s.calls.Load(), Help: "Rate limit calls.",
			Metric: "ratelimit_service_total_requests", Label: "grpc_method", LabelValue: callMethod,
		},
	}
	if s.options.WithoutRules {
		return list
	}
	return append(list, s.unknownDomains()...)
}

// otherDomains is the name for all unknown domains that are not counted by name.
const otherDomains = "_other"

// unknownDomains returns the counters of domains of requests that the configuration does not have,
// sorted. Domains with the same form in names are counted together.
func (s *Statistics) unknownDomains() []Counter {
	values := map[string]uint64{otherDomains: s.decider.Stats().OtherDomains.Load()}
	for domain, n := range s.decider.UnknownDomains() {
		values[cleanName(string(domain))] += n
	}
	list := make([]Counter, 0, len(values))
	for _, domain := range slices.Sorted(maps.Keys(values)) {
		list = append(list, Counter{
			Name: rulePrefix + domain + ".domain_not_found", Value: values[domain],
			Help:   "Descriptors in domains that are not configured.",
			Metric: "ratelimit_service_rate_limit_domain_not_found", Label: "domain", LabelValue: domain,
		})
	}
	return list
}

// storeErrorName returns the name of failures of the store. There is only one, so that the kinds of
// failures add up to the calls that failed.
func (o Options) storeErrorName() string {
	if o.PeerNames {
		return "redis_error"
	}
	return "store_error"
}

// serviceCounter returns a counter without a label.
func serviceCounter(name, help string, value uint64) Counter {
	return Counter{Name: servicePrefix + name, Value: value, Metric: "ratelimit_service_" + name, Help: help}
}

// failureCounter returns the counter of a kind of failed calls.
func failureCounter(kind string, value uint64) Counter {
	return Counter{
		Name: callPrefix + kind, Value: value, Help: "Rate limit calls that failed.",
		Metric: "ratelimit_service_should_rate_limit_error", Label: "err_type", LabelValue: kind,
	}
}

// fallbackCounter returns the counter of the calls that a failure mode answered.
func fallbackCounter(kind string, value uint64) Counter {
	return Counter{
		Name: servicePrefix + "store_fallback." + kind, Value: value,
		Help:   "Calls answered by the failure mode while the store failed.",
		Metric: "ratelimit_service_store_fallback", Label: "mode", LabelValue: kind,
	}
}
