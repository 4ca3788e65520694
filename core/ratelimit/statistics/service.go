package statistics

// Counter is a count of the service itself, since the start.
type Counter struct {
	Name  string // with dots
	Value uint64
	// Metric, Label and LabelValue are the name for Prometheus; Label is empty
	// for none. Counters of one metric have the same Help.
	Metric, Label, LabelValue string
	Help                      string
}

// Service returns the counters of the service itself.
func (s *Statistics) Service() []Counter {
	d := s.decider.Stats()
	return []Counter{
		plain("config_load_success", "Configurations that came into force.", s.rules.Loaded()),
		plain("config_load_error", "Configurations that were refused.", s.rules.Refused()),
		plain("global_shadow_mode", "Over-limit results that SHADOW_MODE let pass.", d.GlobalShadow.Load()),
		failure(s.options.storeError(), d.StoreErrors.Load()),
		failure("service_error", d.ServiceErrors.Load()),
		fallback("failed_open", d.FailedOpen.Load()),
		fallback("failed_closed", d.FailedClosed.Load()),
		fallback("counted_locally", d.CountedLocally.Load()),
		{
			Name: serverPrefix + "total_requests", Value: s.calls.Load(), Help: "Rate limit calls.",
			Metric: "ratelimit_service_total_requests", Label: "grpc_method", LabelValue: method,
		},
	}
}

// storeError returns the name of failures of the store. There is one, so that the kinds of failures add
// up to the calls that failed.
func (o Options) storeError() string {
	if o.PeerNames {
		return "redis_error"
	}
	return "store_error"
}

func plain(name, help string, value uint64) Counter {
	return Counter{Name: servicePrefix + name, Value: value, Metric: "ratelimit_service_" + name, Help: help}
}

func failure(kind string, value uint64) Counter {
	return Counter{
		Name: callPrefix + kind, Value: value, Help: "Rate limit calls that failed.",
		Metric: "ratelimit_service_should_rate_limit_error", Label: "err_type", LabelValue: kind,
	}
}

func fallback(kind string, value uint64) Counter {
	return Counter{
		Name: servicePrefix + "store_fallback." + kind, Value: value, Help: "Calls answered by the failure mode while the store failed.",
		Metric: "ratelimit_service_store_fallback", Label: "mode", LabelValue: kind,
	}
}
