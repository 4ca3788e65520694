package operator

import (
	"testing"
	"time"
)

// TestTimes also checks that --since includes events at its exact time.
func TestTimes(t *testing.T) {
	now := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"":                          {},
		"36h":                       now.Add(-36 * time.Hour),
		"2026-01-31":                time.Date(2026, time.January, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T10:20":          time.Date(2026, time.January, 31, 10, 20, 0, 0, time.UTC),
		"2026-01-31T10:20:30+02:00": time.Date(2026, time.January, 31, 8, 20, 30, 0, time.UTC),
	} {
		if got, err := parseTime("--since", s, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v (%v), want %v", s, got, err, want)
		}
	}
	f := auditFlags{since: "2026-01-31", limit: 1}
	if q, err := f.parseQuery(now); err != nil ||
		!q.After.Equal(time.Date(2026, time.January, 30, 23, 59, 59, 999_999_000, time.UTC)) {
		t.Errorf("since a day: after %v (%v), want the first instant of the day included", q.After, err)
	}
}
