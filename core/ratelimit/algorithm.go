package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// Algorithm says how the hits of a limit are counted (contract L-53).
type Algorithm uint8

// The algorithms.
const (
	// FixedWindow counts the hits of each window, also those over the limit.
	FixedWindow Algorithm = iota
	// SlidingWindow counts the admitted hits of the window and those of the one before, as far as
	// the last unit still covers it.
	SlidingWindow
	// TokenBucket lets hits in at a steady rate, and a burst at once (GCRA).
	TokenBucket
)

var algorithmNames = [...]string{
	FixedWindow: "fixed_window", SlidingWindow: "sliding_window", TokenBucket: "token_bucket",
}

// ParseAlgorithm returns the algorithm with a name, or false.
func ParseAlgorithm(name string) (Algorithm, bool) {
	for a, known := range algorithmNames {
		if known == name {
			return Algorithm(a), true //nolint:gosec // an index of a short list
		}
	}
	return 0, false
}

// AlgorithmNames returns the names of all algorithms.
func AlgorithmNames() []string { return algorithmNames[:] }

// String returns the name of the algorithm as rules have it.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return "unknown"
}

// Bound is the greatest number of hits at once: the burst of a token bucket, else the limit.
func (l Limit) Bound() uint32 {
	if l.Algorithm == TokenBucket {
		return l.Burst
	}
	return l.RequestsPerUnit
}

// appendState appends to a key what tells the states of the counter apart: the window of a fixed
// window; of other algorithms, whose states outlive windows, the form of the state.
func (l Limit) appendState(key []byte, w Window) []byte {
	switch l.Algorithm {
	case SlidingWindow:
		return append(key, "/s"...)
	case TokenBucket:
		tick := Bucket{Limit: uint64(l.RequestsPerUnit), Window: w.Length, Burst: uint64(l.Burst)}.Tick()
		return appendNumber(append(key, "/b"...), int64(tick))
	default:
		return appendNumber(key, w.Start)
	}
}

// Verdict is what an algorithm other than FixedWindow says about hits.
type Verdict struct {
	Admitted bool
	// Remaining is how many hits fit now, after those that were admitted.
	Remaining uint64
	// Reset is the time until these hits fit, if they were refused; else until the window ends, or
	// until the bucket is full.
	Reset time.Duration
}

// Sliding is the state of a sliding window: the admitted hits of a window and of the one before.
// The zero value has none.
type Sliding struct {
	Window           int64 // number of the window since the epoch
	Current, Earlier uint64
}

// SlidingLimit is a limit of a sliding window. Window is at least a microsecond.
type SlidingLimit struct {
	Limit  uint64
	Window time.Duration
}

// Take returns the verdict about hits at a time, and the state after it. A clock that was set back
// does not bring hits back: the state has the time of its own window at least. Negative hits are
// given back.
func (l SlidingLimit) Take(s Sliding, now time.Time, hits int64) (Sliding, Verdict) {
	length := int64(l.Window / time.Microsecond)
	s, elapsed := s.at(now.UnixMicro(), length)
	if hits <= 0 {
		s.Current -= min(s.Current, uint64(-hits)) //nolint:gosec // not negative
		return s, Verdict{Admitted: true, Remaining: l.room(s, elapsed, length), Reset: microseconds(length - elapsed)}
	}
	n := uint64(hits)
	if room := l.room(s, elapsed, length); n > room {
		return s, Verdict{Remaining: room, Reset: microseconds(l.wait(s, elapsed, length, n))}
	}
	s.Current += n
	return s, Verdict{Admitted: true, Remaining: l.room(s, elapsed, length), Reset: microseconds(length - elapsed)}
}

// at returns the state in the window of a time, and the part of the window that has passed.
func (s Sliding) at(now, length int64) (state Sliding, elapsed int64) {
	window := floorDiv(now, length)
	switch {
	case window < s.Window: // the clock was set back, or is behind another one
		return s, 0
	case window == s.Window:
	case window == s.Window+1:
		s = Sliding{Window: window, Earlier: s.Current}
	default:
		s = Sliding{Window: window}
	}
	return s, now - window*length
}

// room returns how many hits fit.
func (l SlidingLimit) room(s Sliding, elapsed, length int64) uint64 {
	used := s.Current + covered(s.Earlier, length-elapsed, length)
	return l.Limit - min(used, l.Limit)
}

// covered returns hits × part / whole, rounded up.
func covered(hits uint64, part, whole int64) uint64 {
	high, low := bits.Mul64(hits, uint64(part))            //nolint:gosec // not negative
	quotient, rest := bits.Div64(high, low, uint64(whole)) //nolint:gosec // part is at most whole
	if rest > 0 {
		quotient++
	}
	return quotient
}

// wait returns the time until hits that do not fit now will fit, if no others are admitted: one
// unit for more hits than the limit.
func (l SlidingLimit) wait(s Sliding, elapsed, length int64, n uint64) int64 {
	if n > l.Limit {
		return length
	}
	if s.Current <= l.Limit-n { // they will fit in this window, or as it ends
		return untilCovered(s.Earlier, l.Limit-n-s.Current, length) - elapsed
	}
	return length - elapsed + untilCovered(s.Current, l.Limit-n, length)
}

// untilCovered returns the time since the beginning of a window after which at most room of the
// hits of the window before are covered.
func untilCovered(hits, room uint64, length int64) int64 {
	if hits <= room {
		return 0
	}
	high, low := bits.Mul64(room, uint64(length)) //nolint:gosec // not negative
	part, _ := bits.Div64(high, low, hits)        // less than the length
	return length - int64(part)                   //nolint:gosec // less than the length
}

// Bucket is a limit of a token bucket: Burst hits at once, and Limit in each Window on average.
// Limit and Burst are at least 1.
type Bucket struct {
	Limit  uint64
	Window time.Duration
	Burst  uint64
}

// Tick is the unit of the times of the bucket: a nanosecond, or more where the bucket takes more
// than 73 years to fill. Buckets of different ticks need different keys.
func (b Bucket) Tick() time.Duration {
	for _, tick := range [...]time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond} {
		if delayIn(b.Burst, b.Window, b.Limit, tick) < maxDelay {
			return tick
		}
	}
	return time.Second
}

// Cut returns a state at a time as that of this bucket: at most empty. A state that was written
// under another limit or burst may be beyond that, and would lock the bucket for longer than it
// takes to fill. It is for a change of these only: by a time before that of the call that wrote the
// state, hits would come back.
func (b Bucket) Cut(full int64, now time.Time) int64 {
	tick := b.Tick()
	at := now.UnixNano() / int64(tick)
	if full <= at {
		return full
	}
	return min(full, at+b.delay(b.Burst, tick))
}

// Take returns the verdict about hits at a time, and the state after it: the time at which the
// bucket is full, in ticks since the epoch, zero for a bucket that is full. Each hit delays it by
// Window / Limit, rounded up to a tick. Negative hits are given back.
func (b Bucket) Take(full int64, now time.Time, hits int64) (after int64, v Verdict) {
	tick := b.Tick()
	at := now.UnixNano() / int64(tick)
	full = max(full, at)
	capacity := b.delay(b.Burst, tick)
	switch delay := b.delay(magnitude(hits), tick); {
	case hits <= 0:
		full = max(full-delay, at)
	case uint64(hits) > b.Burst: // it never fits
		return full, Verdict{Remaining: b.room(capacity-(full-at), tick), Reset: b.Window}
	case full-at+delay > capacity:
		return full, Verdict{Remaining: b.room(capacity-(full-at), tick), Reset: ticks(full-at+delay-capacity, tick)}
	default:
		full += delay
	}
	return full, Verdict{Admitted: true, Remaining: b.room(capacity-(full-at), tick), Reset: ticks(full-at, tick)}
}

// FullAt returns the time of a state. It is at most in the year 2262.
func (b Bucket) FullAt(full int64) time.Time { return time.Unix(0, int64(ticks(full, b.Tick()))) }

// maxDelay is more than the times of a bucket, in ticks.
const maxDelay = math.MaxInt64 / 4

// delay returns by how many ticks hits delay the time at which the bucket is full.
func (b Bucket) delay(hits uint64, tick time.Duration) int64 {
	return delayIn(hits, b.Window, b.Limit, tick)
}

func delayIn(hits uint64, window time.Duration, limit uint64, tick time.Duration) int64 {
	high, low := bits.Mul64(hits, uint64(window/tick)) //nolint:gosec // positive
	if high >= limit {
		return maxDelay
	}
	quotient, rest := bits.Div64(high, low, limit)
	if rest > 0 {
		quotient++
	}
	return int64(min(quotient, maxDelay)) //nolint:gosec // it fits
}

// room returns how many hits fit into a bucket that some ticks are free of.
func (b Bucket) room(free int64, tick time.Duration) uint64 {
	if free <= 0 {
		return 0
	}
	window := uint64(b.Window / tick)              //nolint:gosec // positive
	high, low := bits.Mul64(uint64(free), b.Limit) //nolint:gosec // positive
	if high >= window {
		return b.Burst
	}
	n, _ := bits.Div64(high, low, window)
	n = min(n, b.Burst)
	for n > 0 && b.delay(n, tick) > free { // the delay of hits is rounded up
		n--
	}
	return n
}

// ticks returns a number of ticks as a duration, at most the greatest one.
func ticks(n int64, tick time.Duration) time.Duration {
	if n > math.MaxInt64/int64(tick) {
		return math.MaxInt64
	}
	return time.Duration(n) * tick
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func magnitude(n int64) uint64 {
	if n < 0 {
		return uint64(-n)
	}
	return uint64(n)
}

// floorDiv returns a / b, rounded down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
