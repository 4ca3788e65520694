package ratelimit

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// admission is a hit that was admitted.
type admission struct {
	at   time.Time
	hits uint64
}

// drawUnit returns a unit, mostly a short one.
func drawUnit(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]Unit{Second, Second, Minute, Hour, Day, Year}).Draw(t, "unit").Window()
}

// drawStep returns a time between two calls, of the order of the window or of a part of it.
func drawStep(t *rapid.T, window time.Duration) time.Duration {
	part := rapid.SampledFrom([]time.Duration{1, 3, 10, 1000, 100_000}).Draw(t, "part")
	return time.Duration(rapid.Int64Range(0, int64(window/part)).Draw(t, "step"))
}

// slidingModel is a sliding window by its definition, on all hits that were admitted, in rational
// numbers.
type slidingModel struct {
	limit    uint64
	window   time.Duration
	admitted []admission
}

// room returns how many hits fit: the limit less the hits of this window, and the covered share of
// those of the window before, rounded down.
func (m *slidingModel) room(now time.Time) uint64 {
	length := m.window.Microseconds()
	number := now.UnixMicro() / length
	var current, earlier int64
	for _, a := range m.admitted {
		switch a.at.UnixMicro() / length {
		case number:
			current += int64(a.hits)
		case number - 1:
			earlier += int64(a.hits)
		}
	}
	share := big.NewRat(length-now.UnixMicro()%length, length)
	room := new(big.Rat).Sub(big.NewRat(int64(m.limit)-current, 1), new(big.Rat).Mul(big.NewRat(earlier, 1), share))
	if room.Sign() < 0 {
		return 0
	}
	return new(big.Int).Quo(room.Num(), room.Denom()).Uint64()
}

// TestSlidingWindow compares the algorithm with its definition at random times, and checks its
// bounds: in any interval of one unit less than twice the limit is admitted, and what is refused
// fits after exactly the time that is stated.
func TestSlidingWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := SlidingLimit{Limit: rapid.Uint64Range(1, 40).Draw(t, "limit"), Window: drawUnit(t)}
		m := slidingModel{limit: l.Limit, window: l.Window}
		now := time.UnixMicro(rapid.Int64Range(1_700_000_000_000_000, 1_900_000_000_000_000).Draw(t, "start"))
		var state Sliding
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			now = now.Add(drawStep(t, l.Window).Truncate(time.Microsecond))
			n := rapid.Int64Range(0, int64(l.Limit)+2).Draw(t, "hits")
			room := m.room(now)
			after, v := l.Take(state, now, n)
			if v.Admitted != (uint64(n) <= room) {
				t.Fatalf("%d hits where %d fit: %+v, state %+v", n, room, v, state)
			}
			if v.Admitted && n > 0 {
				m.admitted = append(m.admitted, admission{now, uint64(n)})
			}
			if want := m.room(now); v.Remaining != want {
				t.Fatalf("%d remain, want %d", v.Remaining, want)
			}
			checkSlidingReset(t, l, after, now, n, v)
			state = after
		}
		checkInterval(t, m.admitted, l.Window, 2*l.Limit-1)
	})
}

// checkSlidingReset checks the time until a reset.
func checkSlidingReset(t *rapid.T, l SlidingLimit, s Sliding, now time.Time, n int64, v Verdict) {
	switch {
	case v.Admitted:
		if end := now.Add(v.Reset); end.UnixMicro()%l.Window.Microseconds() != 0 || v.Reset <= 0 || v.Reset > l.Window {
			t.Fatalf("the reset %v is not the end of the window", v.Reset)
		}
	case uint64(n) > l.Limit:
		if v.Reset != l.Window {
			t.Fatalf("the reset of hits that never fit is %v", v.Reset)
		}
	default:
		if _, then := l.Take(s, now.Add(v.Reset), n); !then.Admitted {
			t.Fatalf("after %v the hits do not fit: %+v", v.Reset, then)
		}
		if _, earlier := l.Take(s, now.Add(v.Reset-time.Microsecond), n); earlier.Admitted {
			t.Fatalf("the hits fit before %v", v.Reset)
		}
	}
}

// checkInterval checks that no interval of a length has more than most hits.
func checkInterval(t *rapid.T, admitted []admission, length time.Duration, most uint64) {
	for i, first := range admitted {
		sum := uint64(0)
		for _, a := range admitted[i:] {
			if a.at.Sub(first.at) >= length {
				break
			}
			sum += a.hits
		}
		if sum > most {
			t.Fatalf("%d hits within one unit, want at most %d", sum, most)
		}
	}
}

// TestSlidingWindowOfEvenHits: callers that are even in a window get at most the limit in any
// interval of one unit.
func TestSlidingWindowOfEvenHits(t *testing.T) {
	t.Parallel()
	l := SlidingLimit{Limit: 60, Window: time.Minute}
	var state Sliding
	var admitted []admission
	for i := range 5 * 120 { // twice the limit, each half second
		now := time.Unix(1_800_000_000, 0).Add(time.Duration(i) * time.Second / 2)
		var v Verdict
		if state, v = l.Take(state, now, 1); v.Admitted {
			admitted = append(admitted, admission{now, 1})
		}
	}
	for i, first := range admitted {
		if first.at.Sub(admitted[0].at) < 2*time.Minute {
			continue // the first windows were not even
		}
		n := 0
		for _, a := range admitted[i:] {
			if a.at.Sub(first.at) >= l.Window {
				break
			}
			n++
		}
		if n > int(l.Limit)+1 {
			t.Fatalf("%d hits within a minute from %v", n, first.at)
		}
	}
}

// TestClockSetBack: a clock that is behind brings no hits back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	sliding := SlidingLimit{Limit: 5, Window: time.Minute}
	s, _ := sliding.Take(Sliding{}, now, 5)
	bucket := Bucket{Limit: 5, Window: time.Minute, Burst: 5}
	full, _ := bucket.Take(0, now, 5)
	for _, back := range []time.Duration{time.Microsecond, time.Second, time.Hour} {
		if _, v := sliding.Take(s, now.Add(-back), 1); v.Admitted {
			t.Errorf("the sliding window admits %v before", back)
		}
		if _, v := bucket.Take(full, now.Add(-back), 1); v.Admitted {
			t.Errorf("the bucket admits %v before", back)
		}
	}
}

// TestTokenBucket compares the algorithm with a bucket of a rational number of tokens, and checks
// the bound burst + rate × t for any interval. It may admit a hit less than the model, by the
// nanoseconds to which times are rounded up.
func TestTokenBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Bucket{
			Limit: rapid.Uint64Range(1, 1000).Draw(t, "limit"), Window: drawUnit(t),
			Burst: rapid.Uint64Range(1, 60).Draw(t, "burst"),
		}
		now := time.Unix(1_800_000_000, rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
		var full int64
		var admitted []admission
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			now = now.Add(drawStep(t, b.Window))
			n := rapid.Int64Range(-2, int64(b.Burst)+2).Draw(t, "hits")
			after, v := b.Take(full, now, n)
			if v.Remaining > b.Burst || after < now.UnixNano()/int64(b.Tick()) {
				t.Fatalf("%+v, full at %d", v, after)
			}
			if _, again := b.Take(after, now, int64(v.Remaining)); !again.Admitted {
				t.Fatalf("%d hits remain, and do not fit", v.Remaining)
			}
			if _, more := b.Take(after, now, int64(v.Remaining)+1); more.Admitted {
				t.Fatalf("more than the %d hits that remain fit", v.Remaining)
			}
			if !v.Admitted {
				checkBucketReset(t, b, after, now, n, v)
			} else if n > 0 {
				admitted = append(admitted, admission{now, uint64(n)})
			}
			if n < 0 {
				admitted = nil // hits that were given back may come again
			}
			full = after
		}
		checkBucketBound(t, b, admitted, 0)
	})
}

// checkBucketBound checks that at most burst + rate × t hits were admitted in any interval of a
// length t. more is added to each interval.
func checkBucketBound(t *rapid.T, b Bucket, admitted []admission, more time.Duration) {
	for i, first := range admitted {
		sum := new(big.Rat)
		for _, a := range admitted[i:] {
			sum.Add(sum, new(big.Rat).SetUint64(a.hits))
			allowed := big.NewRat(int64(a.at.Sub(first.at)+more), int64(b.Window))
			allowed.Mul(allowed, new(big.Rat).SetUint64(b.Limit)).Add(allowed, new(big.Rat).SetUint64(b.Burst))
			if sum.Cmp(allowed) > 0 {
				t.Fatalf("%v hits within %v, want at most %v", sum, a.at.Sub(first.at), allowed)
			}
		}
	}
}

// TestTokenBucketOfGreatRates: above a billion hits a second, where a nanosecond has room for
// several, a bucket admits at most the hits of one nanosecond more.
func TestTokenBucketOfGreatRates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Bucket{
			Limit: rapid.Uint64Range(1_000_000_000, MaxHits).Draw(t, "limit"), Window: time.Second,
			Burst: rapid.Uint64Range(1, 60).Draw(t, "burst"),
		}
		now := time.Unix(1_800_000_000, 0)
		var full int64
		var admitted []admission
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 3).Draw(t, "step")))
			n := rapid.Int64Range(1, int64(b.Burst)).Draw(t, "hits")
			var v Verdict
			if full, v = b.Take(full, now, n); v.Admitted {
				admitted = append(admitted, admission{now, uint64(n)})
			}
		}
		checkBucketBound(t, b, admitted, time.Nanosecond)
	})
}

// TestChangedBucket changes the limit and the burst of a bucket that is in use. After each change
// it is empty at most, so that a hit fits after the time of one, and the bound of the changed
// bucket holds.
func TestChangedBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window, now := drawUnit(t), time.Unix(1_800_000_000, 0)
		var full int64
		for range rapid.IntRange(2, 6).Draw(t, "changes") {
			b := Bucket{
				Limit: rapid.Uint64Range(1, 1000).Draw(t, "limit"), Window: window,
				Burst: rapid.Uint64Range(1, 60).Draw(t, "burst"),
			}
			full = b.Cut(full, now)
			if b.Cut(full, now) != full {
				t.Fatal("a bucket that was cut is cut again")
			}
			if _, v := b.Take(full, now, 1); v.Reset > b.Window/time.Duration(b.Limit)+time.Nanosecond && !v.Admitted {
				t.Fatalf("after a change to %+v one hit fits in %v", b, v.Reset)
			}
			var admitted []admission
			for range rapid.IntRange(0, 20).Draw(t, "calls") {
				now = now.Add(drawStep(t, window))
				n := rapid.Int64Range(1, int64(b.Burst)).Draw(t, "hits")
				if b.Cut(full, now) != full {
					t.Fatal("a bucket that was not changed is cut")
				}
				var v Verdict
				if full, v = b.Take(full, now, n); v.Admitted {
					admitted = append(admitted, admission{now, uint64(n)})
				}
			}
			checkBucketBound(t, b, admitted, 0)
		}
	})
}

func checkBucketReset(t *rapid.T, b Bucket, full int64, now time.Time, n int64, v Verdict) {
	if uint64(n) > b.Burst {
		if v.Reset != b.Window {
			t.Fatalf("the reset of hits that never fit is %v", v.Reset)
		}
		return
	}
	if _, then := b.Take(full, now.Add(v.Reset), n); !then.Admitted {
		t.Fatalf("after %v the hits do not fit: %+v", v.Reset, then)
	}
	if _, earlier := b.Take(full, now.Add(v.Reset-b.Tick()), n); earlier.Admitted {
		t.Fatalf("the hits fit before %v", v.Reset)
	}
}

// TestTokenBucketRefills: a bucket that is asked all the time admits as many hits as its rate says,
// less one for the rounding.
func TestTokenBucketRefills(t *testing.T) {
	t.Parallel()
	for _, limit := range []uint64{1, 7, 60, 1000} {
		b := Bucket{Limit: limit, Window: time.Second, Burst: 3}
		var full int64
		n := uint64(0)
		begin := time.Unix(1_800_000_000, 0)
		for now := begin; now.Before(begin.Add(10 * time.Second)); now = now.Add(100 * time.Microsecond) {
			var v Verdict
			if full, v = b.Take(full, now, 1); v.Admitted {
				n++
			}
		}
		if want := 10*limit + b.Burst; n > want || n < want-1-want/100 {
			t.Errorf("%d a second admit %d hits in 10 seconds, want %d", limit, n, want)
		}
	}
}

// TestExtremes: neither the greatest limits nor the longest units overflow.
func TestExtremes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	const most = 1<<32 - 1
	for _, unit := range []time.Duration{time.Second, Year.Window()} {
		for _, limit := range []uint64{1, most} {
			b := Bucket{Limit: limit, Window: unit, Burst: most}
			full, v := b.Take(0, now, int64(MaxHits))
			if full < 0 || v.Reset < 0 || v.Remaining != 0 || !v.Admitted {
				t.Errorf("a bucket of %d per %v: %d, %+v", limit, unit, full, v)
			}
			s, w := SlidingLimit{
				Limit: limit, Window: unit,
			}.Take(Sliding{Window: now.UnixMicro() / unit.Microseconds(), Current: most, Earlier: most}, now,
				int64(MaxHits))
			if w.Admitted || w.Reset <= 0 || w.Reset > 2*unit || s.Current != most {
				t.Errorf("a sliding window of %d per %v: %+v, %+v", limit, unit, s, w)
			}
		}
	}
}

func TestAlgorithmNames(t *testing.T) {
	t.Parallel()
	for i, name := range AlgorithmNames() {
		if a, ok := ParseAlgorithm(name); !ok || int(a) != i || a.String() != name {
			t.Errorf("%s is %v", name, a)
		}
	}
	if _, ok := ParseAlgorithm("fixed"); ok || Algorithm(9).String() != "unknown" {
		t.Error("there is an unknown algorithm")
	}
}
