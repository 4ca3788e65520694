package operating

import (
	"testing"
	"time"
)

// TestIsDue checks that each quarter a right is asked about again, also one of which nothing is known.
func TestIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	old, recent := now.Add(-rightsFor-time.Second), now.Add(-rightsFor)
	for _, c := range []struct {
		given, confirmed time.Time
		want             bool
	}{
		{time.Time{}, time.Time{}, true}, {old, time.Time{}, true}, {old, old, true}, {old, recent, false}, {recent, time.Time{}, false},
		{time.Time{}, recent, false},
	} {
		if got := isDue(c.given, c.confirmed, now); got != c.want {
			t.Errorf("given %s, confirmed %s: %v", c.given, c.confirmed, got)
		}
	}
}
