package valkey_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestLostSubtractionIsNotRepeated breaks the connection after the store has executed a
// subtraction. It must not be repeated, because then more requests than the limit would get
// through.
func TestLostSubtractionIsNotRepeated(t *testing.T) {
	address := sharedServer(t)
	cutter, err := instance.NewCutter(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cutter.Close)
	c, checked, key := open(t, newConfig(cutter.Address)), open(t, newConfig(address)), newKeys()
	for name, call := range map[string]func(hits []counter.Hit, after []uint64) error{
		"add":    func(hits []counter.Hit, after []uint64) error { return c.Add(t.Context(), hits, after) },
		"unless": func(hits []counter.Hit, after []uint64) error { return c.AddUnlessOver(t.Context(), hits, after) },
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
					t.Errorf("a lost answer is reported as %v", err)
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
