package wiring

import (
	"context"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/debugapi"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/statsd"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// sinks is where the statistics of the rate limit part go besides the debug
// listener, and the metrics of all parts.
type sinks struct {
	RateLimit  settings.RateLimit
	Statsd     statsd.Config
	Prometheus debugapi.PrometheusConfig
	Statistics *statistics.Statistics
	Metrics    *prometheus.Registry
	Log        *logrus.Entry
}

// open adds those of the parts that are to run to the service: statistics of
// rate limits are of no other part.
func (k sinks) open(ctx context.Context, parts Parts, s *Service) (func(), error) {
	if parts.RateLimit {
		sink, err := k.sender()
		if err != nil {
			return nil, err
		}
		if sink != nil {
			s.background = append(s.background, sink.Run)
		}
	}
	if !k.Prometheus.Enabled {
		return func() {}, nil
	}
	listener, cleanup, err := debugapi.OpenPrometheus(ctx, k.Prometheus, debugapi.Dependencies{
		Metrics: k.Metrics.Handler(), Registerer: k.Metrics, Log: k.Log,
	})
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, server{
		logrus.Fields{"prometheus": listener.Addr().String()}, listener.Serve, listener.Shutdown,
	})
	return cleanup, nil
}

// sender sends to the metrics daemon; where it is turned off, and Prometheus
// has no listener of its own either, statistics go to standard output.
func (k sinks) sender() (*statsd.Sink, error) {
	switch {
	case k.RateLimit.DisableStats:
		return nil, nil
	case k.Statsd.ToDaemon():
		return statsd.ToDaemon(k.Statsd, k.Statistics.NewChanges(), k.Log)
	case k.Prometheus.Enabled:
		return nil, nil
	default:
		return statsd.ToWriter(k.Statsd, k.Statistics.NewChanges(), os.Stdout, k.Log)
	}
}
