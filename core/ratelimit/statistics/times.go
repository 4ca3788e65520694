package statistics

import (
	"sync/atomic"
	"time"
)

// timeSlots is how many response times are kept between two questions. With
// more calls than that, the kept ones are spread evenly over all of them.
const timeSlots = 512

// times keeps a sample of response times, without a lock.
type times struct {
	every atomic.Uint64 // of how many calls one is kept; 0 is 1
	slots [timeSlots]atomic.Int64
}

func (t *times) add(call uint64, took time.Duration) {
	every := max(t.every.Load(), 1)
	if call%every == 0 {
		t.slots[call/every%timeSlots].Store(int64(max(took, 1)))
	}
}

// Times returns a sample of the response times since it was last called, and
// the part of all calls that it stands for, above 0 and at most 1.
func (c *Changes) Times() (sample []time.Duration, rate float64) {
	t := &c.of.times
	for i := range t.slots {
		if took := t.slots[i].Swap(0); took > 0 {
			sample = append(sample, time.Duration(took))
		}
	}
	calls := c.of.calls.Load()
	since := calls - c.calls
	c.calls = calls
	t.every.Store(since/timeSlots + 1)
	if len(sample) == 0 || since == 0 {
		return sample, 1
	}
	return sample, min(1, float64(len(sample))/float64(since))
}
