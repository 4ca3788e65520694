package rest

import (
	"strconv"
	"sync/atomic"
	"time"
)

// slots is the number of seconds of a window: a power of two, more than a minute.
const slots = 64

// window counts events by the second, for the last minute. Its zero value is empty. It is safe for
// concurrent use.
type window struct {
	slots [slots]atomic.Uint64 // the second in the upper half, the number in the lower half
}

func (w *window) add(at time.Time) {
	second := uint64(uint32(at.Unix())) << 32 //nolint:gosec // the upper bits are cut off
	slot := &w.slots[at.Unix()&(slots-1)]
	for {
		old := slot.Load()
		next := second | 1
		if old&^uint64(0xffff_ffff) == second {
			next = old + 1
		}
		if slot.CompareAndSwap(old, next) {
			return
		}
	}
}

// lastMinute returns the number of events in the 60 seconds before the present one.
func (w *window) lastMinute(now time.Time) (n uint64) {
	for s := now.Unix() - 60; s < now.Unix(); s++ {
		if slot := w.slots[s&(slots-1)].Load(); uint32(slot>>32) == uint32(s) { //nolint:gosec // the upper bits are cut off
			n += slot & 0xffff_ffff
		}
	}
	return n
}

// Traffic is what this instance has served in the minute before.
type Traffic struct {
	Requests uint64
	Errors   uint64 // responses with a status from 500 on
	// SignInsRefused is when the limit of sign-ins of an address last refused a request, within a
	// day; otherwise zero.
	SignInsRefused time.Time
}

// PerSecond returns the mean number of requests in a second, with one decimal place.
func (t Traffic) PerSecond() string { return strconv.FormatFloat(float64(t.Requests)/60, 'f', 1, 64) }

// count counts a finished request. It is a no-op for a nil Health.
func (h *Health) count(code int, at time.Time) {
	if h == nil {
		return
	}
	h.requests.add(at)
	if code >= 500 {
		h.errors.add(at)
	}
}

// Traffic returns the traffic of the minute before a time.
func (h *Health) Traffic(now time.Time) Traffic {
	t := Traffic{Requests: h.requests.lastMinute(now), Errors: h.errors.lastMinute(now)}
	if at := time.Unix(h.refused.Load(), 0); now.Sub(at) < 24*time.Hour {
		t.SignInsRefused = at
	}
	return t
}

// refuseSignIn remembers that the limit of sign-ins has refused a request. It is a no-op for a nil
// Health.
func (h *Health) refuseSignIn(at time.Time) {
	if h != nil {
		h.refused.Store(at.Unix())
	}
}
