package lockout_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/lockout"
	"github.com/tollgate-dev/tollgate/core/fault"
)

type manual struct{ now time.Time }

func (m *manual) Now() time.Time { return m.now }

// TestWindowSlides wants failures on both sides of the end of the first one's
// window to lock, and one that is given back not to count.
func TestWindowSlides(t *testing.T) {
	t.Parallel()
	c := &manual{time.Date(2031, time.March, 14, 0, 0, 0, 0, time.UTC)}
	p := auth.LockoutPolicy{Threshold: 3, Window: 15 * time.Minute, Duration: time.Minute}
	guard := lockout.New(p, records.NewLockouts(records.New()), c)
	if _, err := guard.Reserve(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if err := guard.GiveBack(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for i, step := range []time.Duration{0, 14 * time.Minute, 2 * time.Minute, 2 * time.Minute} {
		c.now = c.now.Add(step)
		if filled, err := guard.Reserve(t.Context(), "k"); err != nil || filled != (i == 3) {
			t.Errorf("failure %d: filled %t, %v", i+1, filled, err)
		}
	}
	if _, err := guard.Reserve(t.Context(), "k"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("while locked: %v", err)
	}
}
