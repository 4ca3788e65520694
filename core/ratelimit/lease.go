package ratelimit

import "time"

// The rules of leases (contract L-70, L-71).
const (
	// LeaseSpan is the time for which a share lasts, and for which an instance refuses hits over a
	// limit before it reads the counter again.
	LeaseSpan = 100 * time.Millisecond
	// LeaseKnown is the time for which a count is good enough to take a share of what is left, and
	// for which a share is kept that is not used up.
	LeaseKnown = time.Second

	// shareOfLimit is the greatest part of a limit that is held, and of what is left of it.
	shareOfLimit = 20
)

// LeaseMode says whether an instance may hold a share of a limit (contract L-70).
type LeaseMode uint8

// The modes.
const (
	LeaseDefault LeaseMode = iota // as the service is configured
	LeaseAuto
	LeaseOff
)

var leaseModeNames = [...]string{"", "auto", "off"}

// String returns the mode as rules have it; empty for LeaseDefault.
func (m LeaseMode) String() string {
	if int(m) < len(leaseModeNames) {
		return leaseModeNames[m]
	}
	return ""
}

// ParseLeaseMode returns the mode with a name, or false.
func ParseLeaseMode(name string) (LeaseMode, bool) {
	for mode := LeaseAuto; mode <= LeaseOff; mode++ {
		if name == mode.String() {
			return mode, true
		}
	}
	return LeaseDefault, false
}

// Lease is what an instance knows and holds of one counter of a fixed window. Hits are taken from
// the counter in the store before they are spent, so all instances together never admit more than
// the limit. The zero value knows and holds nothing. It is not safe for concurrent use.
//
// Between two answers of the store an instance counts by itself: counted is the count of the store
// without what the instance holds. So an instance that is alone gives the same answers with leases
// as without, also to hits that are refused.
type Lease struct {
	stored  uint64    // the count when the store last answered, with what is held
	counted uint64    // the count without what is held; more than stored if hits were refused since
	checked time.Time // when the store last answered; zero if it has not

	spent  uint64    // hits since the last call
	since  time.Time // when that was
	unsure bool      // the last call failed, and what it took may be lost
}

// LeaseCall is a call to the store, between Take or GiveBack and Settle or Fail. There is at most
// one at a time.
type LeaseCall struct {
	Addend int64 // to add to the counter; 0 reads it

	keep    uint64 // what is held after the call
	hits    uint64 // that the call counts
	counted uint64 // the count after Take, without the hits that are refused during the call
}

// Share returns the number of hits that the call takes and that are not spent yet.
func (c LeaseCall) Share() uint64 {
	if c.hits == 0 {
		return 0
	}
	return c.keep
}

// Want is what an instance takes from a counter.
type Want struct {
	Hits    uint64 // of the caller; 0 reads the count
	Waiting uint64 // of the callers that wait for this call
	Limit   uint64
	Now     time.Time
}

// Count counts hits without the store and returns the count after them, or false if the store must
// be called: neither does the share suffice, nor is it known that the hits are over the limit.
func (l *Lease) Count(hits, limit uint64, now time.Time) (after uint64, ok bool) {
	after = l.counted + hits
	fresh := !l.checked.IsZero() && now.Sub(l.checked) < LeaseSpan
	switch {
	case hits == 0 && !fresh:
		return 0, false
	case after <= l.stored, hits == 0:
	case after > limit && fresh:
	default:
		return 0, false
	}
	l.counted = after
	l.spent += hits
	return after, true
}

// Held returns how many hits the instance holds.
func (l *Lease) Held() uint64 { return l.stored - min(l.counted, l.stored) }

// IsIdle reports whether the instance holds a share that it does not need: it has not taken another
// for LeaseKnown.
func (l *Lease) IsIdle(now time.Time) bool { return l.Held() > 0 && now.Sub(l.since) >= LeaseKnown }

// IsUnsure reports whether the last call failed.
func (l *Lease) IsUnsure() bool { return l.unsure }

// Turn returns the lease of the next window. What is held of this one is worth nothing any more.
func (l *Lease) Turn() Lease { return Lease{spent: l.spent, since: l.since} }

// Take begins a call that counts the hits of a caller and takes a share.
func (l *Lease) Take(w Want) LeaseCall {
	if w.Hits == 0 {
		return LeaseCall{Addend: max(l.difference(), 0), keep: l.Held(), counted: l.counted}
	}
	share := l.shareSize(w)
	l.spent, l.since = 0, w.Now
	l.counted += w.Hits
	missing := l.counted - min(l.stored, l.counted)
	extra := max(share, missing+w.Waiting) - missing
	return LeaseCall{
		Addend: int64(missing + extra), keep: extra, hits: w.Hits, counted: l.counted,
	} //nolint:gosec // a few times MaxHits
}

// shareSize returns the number of hits to take at once, at least one. Without a recent count it is
// one: no one knows what is left.
func (l *Lease) shareSize(w Want) uint64 {
	if l.unsure || l.checked.IsZero() || w.Now.Sub(l.checked) >= LeaseKnown {
		return 1
	}
	used := l.spent + w.Hits + w.Waiting
	need := 2 * used // no more, since a short time says little
	if elapsed := w.Now.Sub(l.since); elapsed > LeaseSpan/2 {
		need = uint64(float64(used) * float64(LeaseSpan) / float64(elapsed))
	}
	left := w.Limit - min(l.stored, w.Limit)
	return max(min(need, w.Limit/shareOfLimit, left/shareOfLimit), 1)
}

// GiveBack begins a call that gives back hits of a caller, and everything that is held. It must not
// be repeated.
func (l *Lease) GiveBack(hits uint64) LeaseCall {
	c := LeaseCall{Addend: l.difference() - int64(hits), counted: l.counted} //nolint:gosec // at most MaxHits
	l.stored = min(l.stored, l.counted)                                      // nothing of it can be spent any more
	return c
}

// difference returns what the store lacks, or negative what is held.
func (l *Lease) difference() int64 { return int64(l.counted) - int64(l.stored) } //nolint:gosec // counts of a store fit

// Settle ends a call with the count after it, and returns the count for the caller: without what
// the instance holds, and without hits that were refused during the call.
func (l *Lease) Settle(c LeaseCall, after uint64, now time.Time) (count uint64) {
	refused := l.counted - min(c.counted, l.counted)
	count = after - min(c.keep, after)
	l.stored, l.counted, l.checked, l.unsure = after, count+refused, now, false
	return count
}

// Fail ends a call whose outcome is not known. What it took is lost, and what it gave back is gone.
func (l *Lease) Fail(c LeaseCall) {
	l.unsure = true
	l.counted -= min(c.hits, l.counted)
}
