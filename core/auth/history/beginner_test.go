package history

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// newBeginners returns an installation like newInstallation to which people came of whom each, with
// the second sign-in, showed another browser. So everybody's first sign-ins have new values.
func newBeginners(t testing.TB) installation {
	t.Helper()
	i := newInstallation(t)
	for p := range 40 {
		name := fmt.Sprint("beginner ", p)
		i.learn(name, visit{}.observe(t, start.Add(-3*day)))
		i.learn(name, visit{agent: fmt.Sprintf(firefox, 140, 140)}.observe(t, start.Add(-2*day)))
	}
	return i
}

// TestBeginners checks that what is usual within the first sign-ins of everybody is a smaller
// surprise for a beginner, and that it does not matter for others.
func TestBeginners(t *testing.T) {
	plain, beginners := newInstallation(t), newBeginners(t)
	other := visit{agent: fmt.Sprintf(firefox, 140, 140)}.observe(t, start)
	score := func(i installation, known int) Result {
		delete(i.people, "bob")
		for n := range known {
			c := i.counts("bob")
			at := start.Add(time.Duration(n-20) * day)
			o := visit{}.observe(t, at)
			c = Counts{Person: c.Person, Everyone: Table{}} // bob's own sign-ins do not change what is compared
			c.Apply(Learn(o, c), at)
		}
		return Score(other, i.counts("bob"))
	}
	for known := range Experience + 3 {
		a, b := score(plain, known), score(beginners, known)
		device := pointsFor(a, Value{Feature: Device}) - pointsFor(b, Value{Feature: Device})
		switch {
		case known == 0 && (a.Silence != SilentPerson || b.Silence != SilentPerson):
			t.Errorf("without a sign-in: %+v", a)
		case known == 1 && device < 3:
			t.Errorf("a second browser has %v points fewer if it is usual, want at least 3", device)
		case known > 1 && known < Experience && a.Silence != Heard:
			t.Errorf("after %d sign-ins: %+v", known, a)
		}
	}
}

// TestPriorOfBeginners checks the share of new values that is usual after few sign-ins: it is
// bounded by the share of experienced people and 1, never falls when more beginners showed
// something new, and does not matter from Experience sign-ins on.
func TestPriorOfBeginners(t *testing.T) {
	i := newBeginners(t)
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom(hierarchies[:]).Draw(rt, "feature")
		known := float64(rapid.IntRange(0, 2*Experience).Draw(rt, "known"))
		of := func(novel float64) float64 {
			s := newScorer(&Observation{at: start}, Counts{Everyone: Table{}})
			for v, c := range i.everyone {
				s.c.Everyone[v] = c
			}
			count := func(n float64) Count { return Count{Sum: n * Growth(start), Last: start} }
			s.known = known
			s.c.Everyone[Value{Beginners, stage(known)}] = count(100)
			s.c.Everyone[Value{EarlyNovel, stage(known) + "|" + f.key()}] = count(novel)
			return s.usualNovelty(f)
		}
		n := rapid.Float64Range(0, 99).Draw(rt, "novel")
		never, less, more := of(0), of(n), of(n+1)
		switch {
		case less > more || less < never || more > 1 || never <= 0:
			rt.Fatalf("of 100 beginners 0, %v and %v show something new: %v, %v, %v", n, n+1, never, less, more)
		case known >= Experience && never != more:
			rt.Fatalf("after %v sign-ins beginners matter: %v and %v", known, never, more)
		}
	})
}

// TestBeginnersNeverLower checks that the final score of a beginner is not below that of the points
// either.
func TestBeginnersNeverLower(t *testing.T) {
	i := newBeginners(t)
	rapid.Check(t, func(rt *rapid.T) {
		points := rapid.IntRange(0, MaxScore).Draw(rt, "points")
		person := rapid.SampledFrom([]string{"nobody", "beginner 1"}).Draw(rt, "person")
		r := Score(drawVisit(rt, "the").observe(t, start), i.counts(person))
		if got := Combine(points, r); got < points || got > MaxScore {
			rt.Fatalf("points %d and %+v give %d", points, r, got)
		}
	})
}
