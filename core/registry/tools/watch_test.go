package tools

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

var watchEpoch = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

func watchOf(t interface{ Fatal(...any) }, remote string) Watch {
	name, err := registry.ParseName("com.example/weather")
	if err != nil {
		t.Fatal(err)
	}
	return Watch{Name: name, Remote: registry.RemoteURL(remote)}
}

// TestTurns checks that the next question of a remote is within an interval, that there is one in each, and
// that those of many remotes are spread.
func TestTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		interval := time.Duration(rapid.Int64Range(int64(time.Second), int64(30*24*time.Hour)).Draw(rt, "interval"))
		now := watchEpoch.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(rt, "now"))).Truncate(time.Microsecond)
		w := watchOf(rt, rapid.StringMatching(`https://[a-z]{1,9}\.example/mcp`).Draw(rt, "remote"))
		next := w.turn(now, interval)
		if next.Before(now) || next.After(now.Add(interval)) {
			rt.Fatalf("after %s the next turn of %s is %s", now, interval, next)
		}
		if again := w.turn(next, interval); again.Sub(next) != interval.Truncate(time.Microsecond) {
			rt.Fatalf("after the turn %s of %s comes %s", next, interval, again)
		}
	})
	quarters := map[int64]int{}
	for i := range 1000 {
		next := watchOf(t, fmt.Sprintf("https://%d.example/mcp", i)).turn(watchEpoch, 4*time.Hour)
		quarters[int64(next.Sub(watchEpoch)/time.Hour)]++
	}
	for quarter, n := range quarters {
		if n < 200 || n > 300 {
			t.Errorf("%d of 1000 remotes are asked in hour %d of 4", n, quarter)
		}
	}
}

// TestFailures checks that questions become rarer, up to one a day, while a remote is away.
func TestFailures(t *testing.T) {
	t.Parallel()
	for interval, want := range map[time.Duration][]time.Duration{
		6 * time.Hour:  {12 * time.Hour, 24 * time.Hour, 24 * time.Hour},
		time.Second:    {2 * time.Second, 4 * time.Second, 8 * time.Second},
		48 * time.Hour: {48 * time.Hour, 48 * time.Hour},
	} {
		w := watchOf(t, "https://a.example/mcp")
		for i, delay := range want {
			w = w.Fail("away", watchEpoch.Add(time.Duration(i)), interval)
			if w.NextAt.Sub(watchEpoch.Add(time.Duration(i))) != delay || w.Failures != i+1 || !w.Since.Equal(watchEpoch) || w.Problem != "away" {
				t.Errorf("with %s failure %d: %+v", interval, i+1, w)
			}
		}
		for range 100 {
			w = w.Fail("away", watchEpoch, interval)
		}
		if w.NextAt.Sub(watchEpoch) != max(interval, 24*time.Hour) {
			t.Errorf("with %s after many failures: %s", interval, w.NextAt.Sub(watchEpoch))
		}
		if w = w.Answer(List{}, watchEpoch, interval); w.Failures != 0 || w.Problem != "" || !w.Since.IsZero() {
			t.Errorf("after an answer: %+v", w)
		}
	}
}

// TestUnstable checks which answers are those of an unstable server: three lists in three, until two are the
// same.
func TestUnstable(t *testing.T) {
	t.Parallel()
	for answers, want := range map[string]string{
		"aaa": "---", "aba": "---", "abb": "---", "abc": "--u", "abca": "--uu", "abcc": "--u-", "abccd": "--u--", "ababab": "------",
		"aabbcc": "------", "abcdd": "--uu-", "abcddef": "--uu--u",
	} {
		w, got := watchOf(t, "https://a.example/mcp"), ""
		for _, a := range answers {
			w = w.Answer(List{Mark: Mark(a)}, watchEpoch, time.Hour)
			got += map[bool]string{true: "u", false: "-"}[w.Unstable]
			if late := w.NextAt.Sub(watchEpoch) == 24*time.Hour; late != w.Unstable || len(w.Seen) > 2 {
				t.Errorf("%s: the next question is at %s, and %d are kept", answers, w.NextAt, len(w.Seen))
			}
		}
		if got != want {
			t.Errorf("%s is %s, want %s", answers, got, want)
		}
	}
}

// TestReceipt checks that another list, another context and another version are received again.
func TestReceipt(t *testing.T) {
	t.Parallel()
	w := watchOf(t, "https://a.example/mcp")
	one, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	two, err := registry.ParseVersion("2.0.0")
	must.Succeed(t, err)
	answer := func(l List, versions ...registry.Version) Mark {
		w.Versions = versions
		return w.Answer(l, watchEpoch, time.Hour).Receipt()
	}
	first := answer(List{Mark: "a"}, one)
	if first != answer(List{Mark: "a"}, one) || answer(List{Mark: "a"}, one, two) != answer(List{Mark: "a"}, two, one) {
		t.Error("the same has another receipt")
	}
	for what, other := range map[string]Mark{
		"another list": answer(List{Mark: "b"}, one), "another context": answer(List{Mark: "a", ContextMark: "c"}, one),
		"another version": answer(List{Mark: "a"}, two), "one more": answer(List{Mark: "a"}, one, two),
	} {
		if other == first {
			t.Errorf("%s has the same receipt", what)
		}
	}
}
