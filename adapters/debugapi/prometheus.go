package debugapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
)

// PrometheusConfig holds the settings of metrics and of the listener for Prometheus. The debug
// listener always serves the same page.
type PrometheusConfig struct {
	Enabled bool   `env:"USE_PROMETHEUS" envDefault:"false" desc:"add a listener for Prometheus at PROMETHEUS_ADDR; the debug listener serves metrics in any case"`
	Address string `env:"PROMETHEUS_ADDR" envDefault:":9090" desc:"address that the listener for Prometheus listens on, host:port; port 0 = any free port"`
	Path    string `env:"PROMETHEUS_PATH" envDefault:"/metrics" desc:"path of the metrics on the listener for Prometheus"`

	Mapper       string `readBy:"ratelimit" env:"PROMETHEUS_MAPPER_YAML" desc:"file with the Prometheus names of rate limit statistics, in the form of the statsd exporter; read at start; default: the service's own names and labels"`
	Milliseconds bool   `readBy:"ratelimit" env:"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS" envDefault:"false" desc:"report ratelimit_service_response_time_seconds in milliseconds, as older versions of the Envoy rate limit service do; no effect with PROMETHEUS_MAPPER_YAML"`
}

// Validate returns an error that names the first malformed setting.
func (c PrometheusConfig) Validate() error {
	if err := checkAddress(c.Address); err != nil {
		return fmt.Errorf("PROMETHEUS_ADDR: %w", err)
	}
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("PROMETHEUS_PATH: %q does not begin with /", c.Path)
	}
	return nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New(port + " is not a port number from 0 to 65535")
	}
	return nil
}

// maxConnections is the maximum number of open connections of each listener.
const maxConnections = 1000

// OpenPrometheus opens the listener for Prometheus, which serves only the metrics. It serves no
// requests before Serve. The cleanup closes it.
func OpenPrometheus(ctx context.Context, c PrometheusConfig, d Ports) (*Server, func(), error) {
	s, cleanup, err := newServer(ctx, c.Address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != c.Path {
			http.NotFound(w, r)
			return
		}
		d.Metrics.ServeHTTP(w, r)
	}), httpconn.ListenerOptions{Name: "prometheus", Max: maxConnections, Metrics: d.Registerer, Log: d.Log})
	if err != nil {
		return nil, nil, fmt.Errorf("PROMETHEUS_ADDR: %w", err)
	}
	return s, cleanup, nil
}
