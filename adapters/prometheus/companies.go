package prometheus

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth/company"
)

// companiesTimeout bounds the reading of the states of providers.
const companiesTimeout = 2 * time.Second

// companies collects the states of the providers of company sign-in.
type companies struct {
	up   *prometheus.Desc
	read func(context.Context) (map[company.Name]bool, error)
}

// WatchCompanies registers the states of providers, which read returns, with r.
func WatchCompanies(read func(context.Context) (map[company.Name]bool, error), r prometheus.Registerer) {
	r.MustRegister(companies{prometheus.NewDesc("tollgate_provider_up",
		"0 if a provider of company sign-in did not work when it was last needed, on whichever instance, else 1.",
		[]string{"provider"}, nil), read})
}

// Describe implements [prometheus.Collector].
func (c companies) Describe(to chan<- *prometheus.Desc) { to <- c.up }

// Collect implements [prometheus.Collector]. While the states cannot be read there are no samples.
func (c companies) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), companiesTimeout)
	defer cancel()
	states, err := c.read(ctx)
	if err != nil {
		return
	}
	for name, up := range states {
		value := 0.0
		if up {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, value, string(name))
	}
}
