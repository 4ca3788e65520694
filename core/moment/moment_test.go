package moment_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/moment"
)

// TestEndsSoon checks the two weeks before an end, and that what has ended or never ends is not soon.
func TestEndsSoon(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		want bool
	}{
		{time.Time{}, false}, {now, false}, {now.Add(-time.Second), false}, {now.Add(time.Second), true},
		{now.AddDate(0, 0, 14).Add(-time.Second), true}, {now.AddDate(0, 0, 14), false},
	} {
		if got := moment.EndsSoon(c.at, now); got != c.want {
			t.Errorf("%s: %v", c.at, got)
		}
	}
}
