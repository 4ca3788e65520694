package valkey_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/valkey-io/valkey-go"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/must"
)

// scripted runs the script of the package on a server, by a clock that the test sets.
type scripted struct {
	client.Client
	source, clockKey, mode string
}

// newScripted reads the script. The clock is read from a key, and no key expires before the test
// ends.
func newScripted(t *testing.T, mode string) scripted {
	t.Helper()
	const file = "count.lua"
	text, err := os.ReadFile(file)
	must.Succeed(t, err)
	s := scripted{newDirectClient(t, sharedServer(t)), string(text), newKeys()("clock"), mode}
	for old, changed := range map[string]string{
		"call('TIME')":                       "cjson.decode(call('GET', '" + s.clockKey + "'))",
		"'PX', string.format('%.0f', life))": "'PX', '600000')",
	} {
		if !strings.Contains(s.source, old) {
			t.Fatalf("%s does not contain %s", file, old)
		}
		s.source = strings.ReplaceAll(s.source, old, changed)
	}
	return s
}

// admit decides about a hit at a time, and returns the verdict and the stored text.
func (s scripted) admit(t *rapid.T, h counter.Hit, now time.Time) (v ratelimit.Verdict, stored string) {
	ctx := t.Context()
	clock := fmt.Sprintf(`["%d","%d"]`, now.Unix(), now.Nanosecond()/1000)
	args := []string{strconv.Itoa(int(h.Algorithm))}
	for _, n := range []int64{h.Addend, int64(h.Limit), h.Window.Microseconds(), int64(h.Burst), 60_000} {
		args = append(args, strconv.FormatInt(n, 10))
	}
	results := s.DoMulti(ctx,
		s.B().Set().Key(s.clockKey).Value(clock).Build(),
		s.B().Eval().Script(s.source).Numkeys(1).Key(h.Key).Arg(append(args, s.mode)...).Build(),
		s.B().Get().Key(h.Key).Build())
	numbers, err := results[1].AsIntSlice()
	if err != nil || len(numbers) != 3 {
		t.Fatalf("the script returned %v, %v", numbers, err)
	}
	stored, err = results[2].ToString()
	if err != nil && !client.IsValkeyNil(err) {
		t.Fatal(err)
	}
	return ratelimit.Verdict{
		Admitted: numbers[0] == 1, Remaining: uint64(numbers[1]), Reset: time.Duration(numbers[2]) * time.Microsecond,
	}, stored
}

// scripts are the modes of the script.
func scripts(t *testing.T) map[string]scripted {
	t.Helper()
	return map[string]scripted{
		"each":        newScripted(t, "0"),
		"all or none": newScripted(t, "1"),
	}
}

// drawUnit draws a unit.
func drawUnit(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]ratelimit.Unit{ratelimit.Second, ratelimit.Minute, ratelimit.Hour, ratelimit.Day}).
		Draw(t, "unit").Window()
}

// drawStep draws the time between two calls, in whole microseconds: often that until the reset, or
// a microsecond less.
func drawStep(t *rapid.T, unit, reset time.Duration) time.Duration {
	if less := rapid.IntRange(-2, 1).Draw(t, "less than the reset"); less >= 0 {
		return max(reset-time.Duration(less)*time.Microsecond, 0)
	}
	part := rapid.SampledFrom([]int64{1, 3, 10, 1000}).Draw(t, "part")
	return time.Duration(rapid.Int64Range(0, unit.Microseconds()/part).Draw(t, "step")) * time.Microsecond
}

// TestScriptsOfSlidingWindows: at random times, the scripts say what the algorithm says.
func TestScriptsOfSlidingWindows(t *testing.T) {
	run := newKeys()
	for name, s := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			n := 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				l := ratelimit.SlidingLimit{Limit: rapid.Uint64Range(1, 40).Draw(t, "limit"), Window: drawUnit(t)}
				now := time.UnixMicro(1_800_000_000_000_000)
				var state ratelimit.Sliding
				var want ratelimit.Verdict
				for range rapid.IntRange(1, 30).Draw(t, "calls") {
					now = now.Add(drawStep(t, l.Window, want.Reset))
					h := counter.Hit{
						Key: run(fmt.Sprint(name, n)), Addend: rapid.Int64Range(-2, int64(l.Limit)+2).Draw(t, "hits"),
						Limit: l.Limit, Window: l.Window, Algorithm: ratelimit.SlidingWindow,
					}
					got, _ := s.admit(t, h, now)
					if state, want = l.Take(state, now, h.Addend); got != want {
						t.Fatalf("%d hits of %d: got %+v, want %+v", h.Addend, l.Limit, got, want)
					}
				}
			})
		})
	}
}

// slack is the time in microseconds to which the scripts of token buckets are exact: two roundings
// to 1/64.
const slack = 2.0 / 64

// TestScriptsOfTokenBuckets: at random times, the scripts admit what fits into a bucket by its
// definition, in the time that is left until the bucket is full, but for the slack.
func TestScriptsOfTokenBuckets(t *testing.T) {
	run := newKeys()
	for name, s := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			n := 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				limit, burst, unit := rapid.Uint64Range(1, 1000).Draw(t, "limit"),
					rapid.Uint64Range(1, 60).Draw(t, "burst"), drawUnit(t)
				b := bucketModel{
					perHit: float64(unit.Microseconds()) / float64(limit), burst: float64(burst), unit: unit,
				}
				now := time.UnixMicro(1_800_000_000_000_000)
				var v ratelimit.Verdict
				for range rapid.IntRange(1, 30).Draw(t, "calls") {
					step := drawStep(t, unit, v.Reset)
					now = now.Add(step)
					b.untilFull = max(b.untilFull-float64(step.Microseconds()), 0)
					hits := rapid.Int64Range(-2, int64(burst)+2).Draw(t, "hits")
					var stored string
					v, stored = s.admit(t, counter.Hit{
						Key: run(fmt.Sprint(name, n)), Addend: hits, Limit: limit, Window: unit, Burst: burst,
						Algorithm: ratelimit.TokenBucket,
					}, now)
					b.check(t, float64(hits), v)
					b.resume(t, stored, now)
				}
			})
		})
	}
}

// bucketModel is a token bucket by its definition, with times in microseconds.
type bucketModel struct {
	perHit, burst, untilFull float64
	unit                     time.Duration
}

// check compares a verdict about hits with the model, and changes the model.
func (b *bucketModel) check(t *rapid.T, hits float64, v ratelimit.Verdict) {
	missing := b.untilFull + (hits-b.burst)*b.perHit // the time until the hits fit
	switch {
	case v.Admitted && hits > 0 && missing > slack, !v.Admitted && (hits <= 0 || missing < -slack):
		t.Fatalf("%.0f hits fit in %v µs: %+v", hits, missing, v)
	case v.Admitted:
		b.untilFull = max(b.untilFull+hits*b.perHit, 0)
		b.checkReset(t, v, b.untilFull)
	case hits > b.burst && v.Reset != b.unit:
		t.Fatalf("hits that never fit: %+v", v)
	case hits <= b.burst:
		b.checkReset(t, v, missing)
	}
	room := b.burst - b.untilFull/b.perHit
	if n := float64(v.Remaining); n > room+slack/b.perHit || n < min(math.Floor(room-slack/b.perHit), b.burst) {
		t.Fatalf("%v remain, want %v", n, room)
	}
}

func (b *bucketModel) checkReset(t *rapid.T, v ratelimit.Verdict, want float64) {
	if got := float64(v.Reset.Microseconds()); got < want-slack || got > want+1+slack {
		t.Fatalf("a reset of %v µs, want %v", got, want)
	}
}

// resume sets the model to the stored state, which must be that of the model but for the slack.
func (b *bucketModel) resume(t *rapid.T, stored string, now time.Time) {
	full, _ := strconv.ParseFloat(stored, 64) // a full bucket has no stored value
	untilFull := max(full-float64(now.UnixMicro()-1_700_000_000_000_000), 0)
	if math.Abs(untilFull-b.untilFull) > slack {
		t.Fatalf("%v µs until the bucket is full, want %v", untilFull, b.untilFull)
	}
	b.untilFull = untilFull
}

// BenchmarkAdmit measures one hit a call, by many callers, for each algorithm.
func BenchmarkAdmit(b *testing.B) {
	store, key := open(b, newConfig(sharedServer(b))), newKeys()
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.TokenBucket} {
		b.Run(a.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				hits := []counter.Hit{
					{
						Key: key(a.String()), Addend: 1, Limit: 4e9, Burst: 4e9, Window: time.Hour, TTL: time.Hour,
						Algorithm: a,
					},
				}
				results := make([]counter.Result, 1)
				for pb.Next() {
					if err := store.Count(b.Context(), hits, results, counter.Each); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
