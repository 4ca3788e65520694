package prometheus

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// ignoredReviews counts the reports that it gets.
type ignoredReviews struct{ reports int }

func (i *ignoredReviews) Counted(int)          { i.reports++ }
func (i *ignoredReviews) ReminderFailed(error) { i.reports++ }

func TestReviews(t *testing.T) {
	registry, to := prometheus.NewRegistry(), &ignoredReviews{}
	v := NewReviews(to, registry)
	v.Counted(9)
	v.Counted(5)
	v.ReminderFailed(errDefect)
	checkMetrics(t, registry, map[string]float64{"tollgate_reviews_pending": 5})
	if to.reports != 3 {
		t.Errorf("%d reports were passed on, want 3", to.reports)
	}
}
