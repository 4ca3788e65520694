package prometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Throttle counts the tries that a limit of the API itself refuses, and passes the calls on.
type Throttle struct {
	throttle.Throttle
	refused map[throttle.Scope]prometheus.Counter
}

// NewThrottle returns a throttle whose refusals are counted.
func NewThrottle(t throttle.Throttle, r prometheus.Registerer) *Throttle {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_throttled_total",
		Help: "Tries that a limit of the API itself refused.",
	}, []string{"scope"})
	r.MustRegister(refused)
	counted := &Throttle{Throttle: t, refused: map[throttle.Scope]prometheus.Counter{}}
	for _, scope := range []throttle.Scope{
		throttle.AuthAddress, throttle.APIAddress, throttle.RegistryAddress, throttle.LargeBodies, throttle.StepUpUser,
		throttle.NoticeUser, throttle.ResetAddress, throttle.SignInAccount,
		throttle.RefusalUser, throttle.PublisherAddress, throttle.PublisherDomain,
	} {
		counted.refused[scope] = refused.WithLabelValues(string(scope))
	}
	return counted
}

// Try implements throttle.Throttle and counts refusals.
func (t *Throttle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	v, err := t.Throttle.Try(ctx, scope, key)
	if err == nil && !v.Allowed {
		if refused, known := t.refused[scope]; known {
			refused.Inc()
		}
	}
	return v, err
}
