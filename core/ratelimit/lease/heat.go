package lease

import (
	"sync/atomic"
	"time"
)

const (
	// hotDecisions is the number of decisions within a second that makes a key hot (contract L-70).
	hotDecisions = 50

	heatSlots = 1 << 16 // of 8 bytes
	heatTick  = 16 * time.Millisecond
	heatTicks = int64(time.Second / heatTick) // in a second

	// A slot has the upper half of an ID, the tick of its first decision, and the number of
	// decisions.
	countBits = 10
	tickBits  = 22
	countMask = 1<<countBits - 1
	tickMask  = 1<<tickBits - 1
)

// heatTable finds the keys that become hot, in bounded memory. A slot counts the decisions of one
// key; those of other keys with the same slot are subtracted, so that a key which is not hot loses
// its slot.
type heatTable [heatSlots]atomic.Uint64

// isHot counts a decision, and reports whether there were hotDecisions within a second.
func (t *heatTable) isHot(id ID, now time.Time) bool {
	slot := &t[id%heatSlots]
	tick := now.UnixMilli() / heatTick.Milliseconds() & tickMask
	for range 4 { // a decision that is not counted does little harm
		before := slot.Load()
		after, hot := nextHeat(before, id, tick)
		if hot {
			return true
		}
		if slot.CompareAndSwap(before, after) {
			return false
		}
	}
	return false
}

// nextHeat returns a slot after a decision at a tick.
func nextHeat(slot uint64, id ID, tick int64) (after uint64, hot bool) {
	owner, first, count := slot>>(tickBits+countBits), int64(slot>>countBits&tickMask), slot&countMask
	recent := (tick-first)&tickMask < heatTicks
	switch {
	case owner == uint64(id>>32) && recent:
		return slot + 1, count+1 >= hotDecisions
	case recent && count > 1:
		return slot - 1, false
	default:
		return uint64(id>>32)<<(tickBits+countBits) | uint64(tick)<<countBits | 1, false //nolint:gosec // not negative
	}
}
