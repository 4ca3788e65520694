package certfiles

import (
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ShowExpiry adds the metric that tells until when the certificates are good
// that a new connection gets from a configuration of Follow, in Unix seconds.
// It looks at the files as a handshake does, so a renewed certificate shows
// without a connection. A listener has a name of its own.
func ShowExpiry(r prometheus.Registerer, listener string, of *tls.Config) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "tollgate_certificate_expiry_timestamp_seconds",
		Help:        "Until when the certificate of a listener is good, in Unix seconds; of several, the first to expire.",
		ConstLabels: prometheus.Labels{"listener": listener},
	}, func() float64 { return float64(expiry(of).Unix()) }))
}

// expiry is that of the certificate that expires first, none of which there is
// no listener with.
func expiry(of *tls.Config) time.Time {
	present, err := of.GetConfigForClient(nil)
	if err != nil { // Follow gives none
		return time.Time{}
	}
	var first time.Time
	for _, c := range present.Certificates {
		if first.IsZero() || c.Leaf.NotAfter.Before(first) {
			first = c.Leaf.NotAfter
		}
	}
	return first
}
