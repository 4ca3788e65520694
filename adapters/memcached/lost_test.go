package memcached_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestLostSubtractionIsNotRepeated checks that a subtraction is not repeated if the connection
// breaks after the store has executed it, because then more requests than the limit would be
// allowed.
func TestLostSubtractionIsNotRepeated(t *testing.T) {
	address := sharedServer(t)
	cutter, err := instance.NewCutter(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cutter.Close)
	c, checked, key := openClient(t, newConfig(cutter.Address)), openClient(t, newConfig(address)), newKeys()
	for name, call := range map[string]func(hits []counter.Hit, after []uint64) error{
		"Add":           func(hits []counter.Hit, after []uint64) error { return c.Add(t.Context(), hits, after) },
		"AddUnlessOver": func(hits []counter.Hit, after []uint64) error { return c.AddUnlessOver(t.Context(), hits, after) },
	} {
		t.Run(name, func(t *testing.T) {
			used, other := newMinuteHit(key(name)), newMinuteHit(key(name+"-other"))
			used.Addend, used.Limit = 10, 10
			after := make([]uint64, 2)
			await.Until(t, "counted hits", func() bool { return checked.Add(t.Context(), []counter.Hit{used, other}, after) == nil })
			await.Until(t, "a connection", func() bool { return c.Ping(t.Context()) == nil })
			used.Addend = -3
			for n, batch := range [][]counter.Hit{{used}, {other, used}} {
				cutter.Cut(used.Key)
				if err := call(batch, after[:len(batch)]); !fault.Is(err, fault.Unavailable) {
					t.Errorf("the error after a lost response is %v", err)
				}
				look := used
				look.Addend = 0
				if err := checked.Add(t.Context(), []counter.Hit{look}, after[:1]); err != nil {
					t.Fatal(err)
				}
				if least := uint64(10 - 3*(n+1)); after[0] < least {
					t.Errorf("%d hits are left after 3 were subtracted from 10 %d times", after[0], n+1)
				}
				await.Until(t, "a connection", func() bool { return c.Ping(t.Context()) == nil })
			}
		})
	}
}
