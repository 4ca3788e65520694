package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth/assessment"
)

// historyMetrics are the metrics of the score of the history next to that of the points.
type historyMetrics struct {
	points, history prometheus.Observer
	difference      prometheus.Histogram
	silent          labelCounters
}

func newHistoryMetrics(r prometheus.Registerer) historyMetrics {
	scores := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tollgate_login_score",
		Help:    "Scores of logins that started a session and have a score of the history, by scorer, 0 to 100.",
		Buckets: prometheus.LinearBuckets(10, 10, 10),
	}, []string{"scorer"})
	m := historyMetrics{
		points: scores.WithLabelValues("points"), history: scores.WithLabelValues("history"),
		difference: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tollgate_login_score_difference",
			Help:    "Score of the history minus score of the points of a login, -100 to 100.",
			Buckets: prometheus.LinearBuckets(-100, 20, 11),
		}),
		silent: newLabelCounters(r, prometheus.CounterOpts{
			Name: "tollgate_login_history_silent_total",
			Help: "Logins that started a session and have no score of the history, by reason.",
		}, "reason", assessment.SilentInstallation, assessment.SilentPerson, assessment.SilentUnread),
	}
	r.MustRegister(scores, m.difference)
	return m
}

// observe counts what an event says about the history.
func (m historyMetrics) observe(h assessment.HistoryEvaluation) {
	switch {
	case h.Mode == "": // off
	case h.Silent != "":
		m.silent.increment(h.Silent)
	default:
		m.points.Observe(float64(h.PointsScore))
		m.history.Observe(float64(h.Score))
		m.difference.Observe(float64(h.Score - h.PointsScore))
	}
}
