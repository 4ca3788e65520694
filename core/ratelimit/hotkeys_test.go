package ratelimit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newKeyHits(value string, hits uint64, refused bool, now time.Time) KeyHits {
	return KeyHits{[]Entry{{Key: "user", Value: value}, {Key: "path", Value: "/x"}}, hits, 1, refused, now}
}

// TestHotKeys: while the keys are few, the counts are exact, and minutes that are too old do not
// count.
func TestHotKeys(t *testing.T) {
	var (
		keys   HotKeys
		budget HotKeyBudget
		now    = time.Unix(1_800_000_000, 0)
	)
	if got := keys.Top(&budget, now); got != nil {
		t.Errorf("without hits: %v", got)
	}
	keys.Count(newKeyHits("ada", 2, false, now), &budget)
	keys.Count(newKeyHits("bob", 7, true, now.Add(time.Minute)), &budget)
	keys.Count(newKeyHits("ada", 9, false, now.Add(4*time.Minute)), &budget)
	want := []HotKey{{"user=ada,path=/x", 11, 0, 0}, {"user=bob,path=/x", 7, 7, 0}}
	if got := keys.Top(&budget, now.Add(4*time.Minute)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want[0].Hits = 9
	if got := keys.Top(&budget, now.Add(5*time.Minute)); !slices.Equal(got, want) {
		t.Errorf("a minute later: %v, want %v", got, want)
	}
	if got := keys.Top(&budget, now.Add(time.Hour)); len(got) > 0 {
		t.Errorf("an hour later: %v", got)
	}
	if used := budget.used.Load(); used != 0 {
		t.Errorf("no key has hits, and %d count", used)
	}
}

// TestHotKeysOfManyKeys: of more keys than are counted, the counts are within the errors that are
// stated, and a key with more hits than the greatest error is in the list.
func TestHotKeysOfManyKeys(t *testing.T) {
	type hit struct {
		at   time.Time
		hits uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		var (
			keys   HotKeys
			budget HotKeyBudget
			now    = time.Unix(1_800_000_000, 0)
			exact  = map[string][]hit{}
		)
		distinct := rapid.IntRange(1, 3*trackedKeys).Draw(t, "keys")
		for i := range rapid.IntRange(1, 2000).Draw(t, "calls") {
			value := fmt.Sprint((i * i) % distinct)
			if i%5 == 0 {
				value = "hot"
			}
			n := uint64(i%3 + 1)
			keys.Count(newKeyHits(value, n, false, now), &budget)
			exact[value] = append(exact[value], hit{now, n})
			if i%97 == 0 {
				now = now.Add(time.Duration(rapid.IntRange(0, 150).Draw(t, "seconds")) * time.Second)
			}
		}
		worst := uint64(0)
		listed := map[string]bool{}
		for _, k := range keys.Top(&budget, now) {
			value, _, _ := strings.Cut(strings.TrimPrefix(k.Descriptor, "user="), ",")
			listed[value] = true
			n := uint64(0)
			for _, h := range exact[value] {
				if h.at.Unix()/60 > now.Unix()/60-hotMinutes {
					n += h.hits
				}
			}
			if n > k.Hits || k.Hits-k.Error > n {
				t.Fatalf("%s has %d hits, and the list says %d with an error of %d", value, n, k.Hits, k.Error)
			}
			if distinct < trackedKeys && k.Error != 0 {
				t.Fatalf("%d keys, and an error of %d", distinct, k.Error)
			}
			worst = max(worst, k.Hits)
		}
		if now.Sub(exact["hot"][len(exact["hot"])-1].at) < time.Minute && distinct >= trackedKeys && !listed["hot"] {
			t.Fatalf("a fifth of all hits is of one key, which is not in the list (the most has %d)", worst)
		}
	})
}

// TestHotKeysOfBusyRule: of a rule with many decisions in a minute a part is counted, exactly as many
// as it says at first, and the hits are right within the errors that are stated. They are more than
// twice as far away once in 10^10 times.
func TestHotKeysOfBusyRule(t *testing.T) {
	const values, times = 20, 10_000
	var (
		keys   HotKeys
		budget HotKeyBudget
		now    = time.Unix(1_800_000_000, 0)
		counts int
	)
	for i := range values * times {
		weight := keys.Weight(now)
		if i < exactDecisions && weight != 1 {
			t.Fatalf("decision %d has the weight %d", i, weight)
		}
		if weight == 0 {
			continue
		}
		h := newKeyHits(fmt.Sprint(i%values), uint64(1+i%values), i%2 == 0, now)
		h.Weight = weight
		keys.Count(h, &budget)
		counts++
	}
	if counts > values*times/sampling*2 {
		t.Errorf("%d of %d decisions are counted", counts, values*times)
	}
	for i, k := range keys.Top(&budget, now) {
		want := uint64(values-i) * times
		if off := max(k.Hits, want) - min(k.Hits, want); off > 2*k.Error || k.Error > want/10 {
			t.Errorf("%s has %d hits, and the list says %d with an error of %d", k.Descriptor, want, k.Hits, k.Error)
		}
		if k.Refused != 0 && k.Refused != k.Hits {
			t.Errorf("%s has %d hits, of which %d are refused, want all or none", k.Descriptor, k.Hits, k.Refused)
		}
	}
	if keys.Weight(now.Add(time.Minute)) != 1 {
		t.Error("the next minute begins with a part of the decisions")
	}
}

// TestHotKeyBudget: many rules count no more keys together than there is room for, and keys that
// have no hits any more make room.
func TestHotKeyBudget(t *testing.T) {
	var budget HotKeyBudget
	now := time.Unix(1_800_000_000, 0)
	rules := make([]*Rule, maxTrackedKeys+10)
	for i := range rules {
		rules[i] = &Rule{Hits: &Hits{}}
		rules[i].Hits.Keys.Count(newKeyHits("x", 1, false, now), &budget)
	}
	last := rules[len(rules)-1]
	if used := budget.used.Load(); used != maxTrackedKeys || !budget.IsFull() {
		t.Errorf("%d keys are counted", used)
	}
	if got := last.Hits.Keys.Top(&budget, now); len(got) != 0 {
		t.Errorf("a rule for which there was no room has %v", got)
	}
	first := rules[0]
	first.Hits.Keys.Count(newKeyHits("y", 3, false, now), &budget)
	if got := first.Hits.Keys.Top(&budget, now); len(got) != 1 || got[0].Hits != 4 || got[0].Error != 1 {
		t.Errorf("a second key took the place of the first: %v", got)
	}
	now = now.Add(time.Hour)
	budget.Sweep(slices.Values(rules), now)
	last.Hits.Keys.Count(newKeyHits("x", 1, false, now), &budget)
	if got := last.Hits.Keys.Top(&budget, now); len(got) != 1 || budget.used.Load() != 1 {
		t.Errorf("after the sweep: %v, %d keys", got, budget.used.Load())
	}
}

// TestHotKeyText: a descriptor is cut at a whole character, and what is not UTF-8 does not reach
// JSON.
func TestHotKeyText(t *testing.T) {
	for value, want := range map[string]string{
		"a,b=c":                    "k=a,b=c",
		"\xff":                     "k=�",
		strings.Repeat("é", 150):   "k=" + strings.Repeat("é", 99) + "…",
		strings.Repeat("x", 1<<20): "k=" + strings.Repeat("x", 198) + "…",
	} {
		if got := descriptorText([]Entry{{Key: "k", Value: value}}); got != want {
			t.Errorf("got %.300q, want %q", got, want)
		}
	}
}

// BenchmarkHotKeys counts one key, and more keys than have places, so that each call takes the
// place of another one. A request is in the caches of the processor when its keys are counted, as
// these are.
func BenchmarkHotKeys(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	for name, distinct := range map[string]int{"one key": 1, "another key each time": 1000} {
		b.Run(name, func(b *testing.B) {
			var (
				keys   HotKeys
				budget HotKeyBudget
			)
			values := make([]KeyHits, distinct)
			for i := range values {
				values[i] = newKeyHits(fmt.Sprint(i), 1, false, now)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h := &values[i*7919%distinct]
				if h.Weight = keys.Weight(now); h.Weight > 0 {
					keys.Count(*h, &budget)
				}
			}
		})
	}
}
