package statistics

import (
	"sync/atomic"
	"time"
)

// timeSlots is the number of response times that are kept between two calls of Times. With more
// calls of the service, the kept times are spread evenly over all of them.
const timeSlots = 512

// timeSample keeps a sample of response times, without a lock.
type timeSample struct {
	every atomic.Uint64 // one of this many calls is kept; 0 means 1
	slots [timeSlots]atomic.Int64
}

func (t *timeSample) addTime(call uint64, took time.Duration) {
	every := max(t.every.Load(), 1)
	if call%every == 0 {
		t.slots[call/every%timeSlots].Store(int64(max(took, 1)))
	}
}

// Times returns a sample of the response times since its last call, and the fraction of all calls
// that the sample represents, above 0 and at most 1.
func (c *Changes) Times() (sample []time.Duration, rate float64) {
	t := &c.statistics.times
	for i := range t.slots {
		if took := t.slots[i].Swap(0); took > 0 {
			sample = append(sample, time.Duration(took))
		}
	}
	calls := c.statistics.calls.Load()
	since := calls - c.calls
	c.calls = calls
	t.every.Store(since/timeSlots + 1)
	if len(sample) == 0 || since == 0 {
		return sample, 1
	}
	return sample, min(1, float64(len(sample))/float64(since))
}
