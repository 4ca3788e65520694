package ratelimit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sharedCounter is a counter in a store that several instances share.
type sharedCounter struct{ count uint64 }

// add adds to the counter as stores do: it does not become negative.
func (c *sharedCounter) add(n int64) uint64 {
	if n < 0 {
		c.count -= min(uint64(-n), c.count)
	} else {
		c.count += uint64(n)
	}
	return c.count
}

// leaseInstance is an instance that has a lease on the counter.
type leaseInstance struct {
	Lease
	store *sharedCounter
}

// hit counts hits as an instance does, and returns the count after them.
func (i *leaseInstance) hit(hits, limit uint64, now time.Time) uint64 {
	if after, ok := i.Count(hits, limit, now); ok {
		return after
	}
	c := i.Take(Want{Hits: hits, Limit: limit, Now: now})
	return i.Settle(c, i.store.add(c.Addend), now)
}

func (i *leaseInstance) giveBack(hits uint64, now time.Time) uint64 {
	c := i.GiveBack(hits)
	return i.Settle(c, i.store.add(c.Addend), now)
}

// TestLeaseAloneIsExact checks that an instance that is alone gives the same answers with a lease
// as without one: to hits that are admitted and refused, large and small, to hits that are given
// back, and to questions. What it holds stays within its bounds.
func TestLeaseAloneIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(1, 3000).Draw(t, "limit")
		now := time.Unix(1_000_000, 0)
		exact, store := new(sharedCounter), new(sharedCounter)
		i := &leaseInstance{store: store}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(
				time.Duration(rapid.SampledFrom([]int{0, 1, 3, 20, 120, 1500}).Draw(t, "ms")) * time.Millisecond)
			hits := rapid.SampledFrom([]uint64{1, 1, 1, 1, 2, 7, 150, 0}).Draw(t, "hits")
			var got, want uint64
			if rapid.IntRange(0, 20).Draw(t, "kind") == 0 {
				got, want = i.giveBack(hits, now), exact.add(-int64(hits))
			} else {
				got, want = i.hit(hits, limit, now), exact.add(int64(hits))
			}
			if got != want {
				t.Fatalf("count %d, want %d", got, want)
			}
			if held := i.Held(); held > max(limit/20, 1) || held > 0 && store.count-held > limit {
				t.Fatalf("the instance holds %d of %d at count %d", held, limit, store.count)
			}
		}
		if i.giveBack(0, now); store.count != exact.count {
			t.Fatalf("the store has counted %d in the end, want %d", store.count, exact.count)
		}
	})
}

// fleet is several instances with leases on one counter of one limit, for a property test.
type fleet struct {
	limit      uint64
	now        time.Time
	store      *sharedCounter
	instances  []*leaseInstance
	admitted   uint64
	refused    uint64 // hits
	lost       uint64 // hits of calls whose answer was lost, and of instances that were killed
	returned   uint64 // hits given back within the last LeaseSpan, which other instances may not know of
	returnedAt time.Time
}

// call lets an instance count hits. outcome says what happens to a call to the store.
func (f *fleet) call(t *rapid.T, i *leaseInstance, hits uint64, outcome string) {
	after, ok := i.Count(hits, f.limit, f.now)
	if !ok {
		c := i.Take(Want{Hits: hits, Limit: f.limit, Now: f.now})
		switch outcome {
		case "away":
			i.Fail(c)
			return
		case "lost":
			f.store.add(c.Addend)
			f.lost += uint64(c.Addend)
			i.Fail(c)
			return
		}
		after = i.Settle(c, f.store.add(c.Addend), f.now)
	}
	if after <= f.limit {
		f.admitted += hits
	} else {
		f.checkRefusal(t, i, hits)
		f.refused += hits
	}
	if f.admitted > f.limit {
		t.Fatalf("%d hits are admitted of %d", f.admitted, f.limit)
	}
}

// checkRefusal fails if hits are refused that would fit without the shares of the other instances,
// and without those that were lost.
func (f *fleet) checkRefusal(t *rapid.T, by *leaseInstance, hits uint64) {
	missing := f.lost
	for _, i := range f.instances {
		if i != by {
			missing += i.Held()
		}
	}
	if f.now.Sub(f.returnedAt) < LeaseSpan {
		missing += f.returned
	}
	if f.admitted+f.refused+hits+missing <= f.limit {
		t.Fatalf("%d hits are refused after %d admitted and %d refused of %d, with %d in shares", hits, f.admitted,
			f.refused, f.limit, missing)
	}
}

// TestLeasesTogetherNeverAdmitMore checks, with instances that are killed, calls that fail and
// answers that are lost at random times, that all together never admit more than the limit, and
// that they refuse only what the shares of others and lost ones leave no room for.
func TestLeasesTogetherNeverAdmitMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fleet{
			limit: rapid.Uint64Range(1, 2000).Draw(t, "limit"), now: time.Unix(1_000_000, 0), store: new(sharedCounter),
		}
		for range rapid.IntRange(1, 5).Draw(t, "instances") {
			f.instances = append(f.instances, &leaseInstance{store: f.store})
		}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			f.now = f.now.Add(
				time.Duration(rapid.SampledFrom([]int{0, 0, 1, 5, 60, 1100}).Draw(t, "ms")) * time.Millisecond)
			at := rapid.IntRange(0, len(f.instances)-1).Draw(t, "instance")
			i := f.instances[at]
			switch rapid.IntRange(0, 30).Draw(t, "event") {
			case 0: // killed
				f.lost += i.Held()
				f.instances[at] = &leaseInstance{store: f.store}
			case 1: // cool, or stopped
				if f.now.Sub(f.returnedAt) >= LeaseSpan {
					f.returned = 0
				}
				f.returned, f.returnedAt = f.returned+i.Held(), f.now
				i.giveBack(0, f.now)
			case 2: // gives back, but the answer or the call is lost
				held := i.Held()
				c := i.GiveBack(0)
				if rapid.Bool().Draw(t, "executed") {
					f.store.add(c.Addend)
					if c.Addend > 0 { // refused hits, which it counts again later
						f.lost += uint64(c.Addend)
					}
				}
				f.lost += held
				i.Fail(c)
			default:
				hits := rapid.SampledFrom([]uint64{1, 1, 1, 1, 3, 40}).Draw(t, "hits")
				outcome := rapid.SampledFrom([]string{"done", "done", "done", "done", "done", "away", "lost"}).
					Draw(t, "outcome")
				for range rapid.IntRange(1, 60).Draw(t, "times") {
					f.call(t, i, hits, outcome)
				}
			}
		}
	})
}

// TestLeaseSize checks how much an instance takes at once.
func TestLeaseSize(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	known := func(count uint64, used uint64, ago time.Duration) Lease {
		return Lease{stored: count, counted: count, checked: now.Add(-ago), spent: used, since: now.Add(-ago)}
	}
	for name, c := range map[string]struct {
		lease Lease
		want  Want
		taken int64
	}{
		"nothing is known":            {Lease{}, Want{Hits: 1, Limit: 10_000}, 1},
		"the count is old":            {known(10, 500, LeaseKnown), Want{Hits: 1, Limit: 10_000}, 1},
		"what it needs for its span":  {known(10, 199, 500*time.Millisecond), Want{Hits: 1, Limit: 10_000}, 40},
		"twice what it used just now": {known(10, 99, time.Millisecond), Want{Hits: 1, Limit: 10_000}, 200},
		"a part of the limit":         {known(10, 9_999, LeaseSpan), Want{Hits: 1, Limit: 10_000}, 499},
		"a part of what is left":      {known(9_000, 999, LeaseSpan), Want{Hits: 1, Limit: 10_000}, 50},
		"one hit near the limit":      {known(9_990, 999, LeaseSpan), Want{Hits: 1, Limit: 10_000}, 1},
		"more hits than a share":      {known(9_000, 0, LeaseSpan), Want{Hits: 300, Limit: 10_000}, 300},
		"hits of those who wait":      {known(9_990, 0, LeaseSpan), Want{Hits: 1, Waiting: 7, Limit: 10_000}, 8},
		"one hit after a failed call": {
			Lease{stored: 10, counted: 10, checked: now, since: now, spent: 900, unsure: true}, Want{
				Hits: 1, Limit: 10_000,
			}, 1,
		},
		"the rest is used up": {
			Lease{stored: 10, counted: 8, checked: now, since: now}, Want{Hits: 5, Limit: 10_000}, 10,
		},
		"refused hits are counted late": {
			Lease{stored: 100, counted: 130, checked: now.Add(-LeaseSpan)}, Want{Hits: 1, Limit: 100}, 31,
		},
		"a question": {Lease{stored: 10, counted: 8}, Want{Limit: 100}, 0},
	} {
		c.want.Now = now
		if got := c.lease.Take(c.want).Addend; got != c.taken {
			t.Errorf("%s: %d, want %d", name, got, c.taken)
		}
	}
}
