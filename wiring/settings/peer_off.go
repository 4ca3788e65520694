package settings

import "github.com/caarlos0/env/v11"

// forgetPartsOff sets the settings of the parts that are off to their defaults, so that they are
// not validated: the Envoy rate limit service does not look at them either, and teams leave them in
// their environment. It is for a service that takes the place of that one.
func (s *Settings) forgetPartsOff() {
	var usual Settings
	_ = env.ParseWithOptions(&usual, env.Options{Environment: map[string]string{}}) // the defaults are well formed
	if s.RateLimit.Backend != Memstore {
		s.Memcached = usual.Memcached
	}
	if s.RateLimit.ConfigType != ConfigFromServer {
		s.RuleServer = usual.RuleServer
	}
	if !s.RuleServer.TLS.Enabled {
		s.RuleServer.TLS = usual.RuleServer.TLS
	}
	if !s.Tracing.Enabled {
		s.Tracing = usual.Tracing
	}
	if !s.Prometheus.Enabled {
		s.Prometheus.Address, s.Prometheus.Path = usual.Prometheus.Address, usual.Prometheus.Path
	}
	if !s.Statsd.ToDaemon() {
		s.Statsd.Host, s.Statsd.Port, s.Statsd.Protocol = usual.Statsd.Host, usual.Statsd.Port, usual.Statsd.Protocol
	}
	if !s.Statsd.Tagged {
		s.Statsd.MogrifierNames, s.Statsd.Mogrifiers = nil, nil
	}
}
