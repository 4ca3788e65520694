package tlsfiles

import (
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ShowExpiry registers the metric of when the certificates of a configuration of [FollowFiles]
// expire, in Unix seconds. It checks the files like a handshake does, so that a renewed certificate
// shows before the next connection. Each listener needs its own name.
func ShowExpiry(r prometheus.Registerer, listener string, of *tls.Config) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "tollgate_certificate_expiry_timestamp_seconds",
		Help:        "When the certificate of a listener expires, in Unix seconds; of several, the first to expire.",
		ConstLabels: prometheus.Labels{"listener": listener},
	}, func() float64 { return float64(firstExpiry(of).Unix()) }))
}

// firstExpiry returns when the first of the certificates expires. A listener has at least one.
func firstExpiry(of *tls.Config) time.Time {
	present, err := of.GetConfigForClient(nil)
	if err != nil { // FollowFiles returns no error
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
