package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// logHook counts log lines.
type logHook struct {
	levels map[logrus.Level]prometheus.Counter
}

// CountLog counts the lines that log writes from now on, by level.
func CountLog(log *logrus.Logger, r prometheus.Registerer) {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_log_entries_total",
		Help: "Lines that were logged.",
	}, []string{"level"})
	r.MustRegister(counts)
	h := logHook{map[logrus.Level]prometheus.Counter{}}
	for _, level := range logrus.AllLevels {
		h.levels[level] = counts.WithLabelValues(level.String())
	}
	log.AddHook(h)
}

// Levels implements logrus.Hook.
func (logHook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (h logHook) Fire(e *logrus.Entry) error {
	h.levels[e.Level].Inc()
	return nil
}
