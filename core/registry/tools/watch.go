package tools

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
)

const (
	// slowest is the time between two questions to a remote that is away or unstable, at most, unless the
	// interval is longer.
	slowest = 24 * time.Hour
	// noticeEvery is the time between two notices about a remote, at least.
	noticeEvery = time.Hour
	// maxProblem is the greatest length of Watch.Problem in bytes.
	maxProblem = 500
)

// Watch is what is known of a remote of a server that is asked again and again. Times are UTC with
// microseconds; a zero one is that of something that did not happen.
type Watch struct {
	Name   registry.Name
	Remote registry.RemoteURL
	// Versions have the remote and are listed, or in quarantine because of their tools.
	Versions []registry.Version

	NextAt     time.Time // of the next question
	Failures   int       // questions without an answer since the last answer
	Since      time.Time // when the first of them was
	Problem    string    // of the last of them
	Seen       []Mark    // of the lists of the last two answers, the last one first
	Unstable   bool      // the last three answers had three lists; ends when two answers are the same
	Received   Mark      // of the last list and the versions that got it
	NotifiedAt time.Time
	AskedAt    time.Time // of the last question; zero before the first one
}

// Fail returns the watch after a question without an answer: each failure doubles the time until the next
// question, up to a day.
func (w Watch) Fail(problem string, now time.Time, interval time.Duration) Watch {
	if w.Failures++; w.Failures == 1 {
		w.Since = now
	}
	w.Problem = registry.ClipBytes(problem, maxProblem)
	delay := interval
	for range w.Failures {
		delay = min(2*delay, max(interval, slowest))
	}
	w.NextAt, w.AskedAt = now.Add(delay), now
	return w
}

// Answer returns the watch after an answer with a list.
func (w Watch) Answer(l List, now time.Time, interval time.Duration) Watch {
	w.Failures, w.Problem, w.Since, w.AskedAt = 0, "", time.Time{}, now
	seen := l.whole()
	same := len(w.Seen) > 0 && w.Seen[0] == seen
	w.Unstable = !same && (w.Unstable || len(w.Seen) == 2 && w.Seen[0] != w.Seen[1] && w.Seen[1] != seen)
	w.Seen = append([]Mark{seen}, w.Seen...)[:min(len(w.Seen)+1, 2)]
	if w.NextAt = w.turn(now, interval); w.Unstable {
		w.NextAt = now.Add(max(interval, slowest))
	}
	return w
}

// turn returns the next turn of the remote after a time. There is one in each interval, at a place of its
// own, so that the turns of many remotes are spread evenly.
func (w Watch) turn(now time.Time, interval time.Duration) time.Time {
	place := fnv.New64a()
	_, _ = place.Write([]byte(w.Name.String() + "\n" + string(w.Remote))) // it never fails
	interval = interval.Truncate(time.Microsecond)
	offset := time.Duration(place.Sum64() % uint64(max(interval, 1))).Truncate(time.Microsecond)
	next := now.Truncate(interval).Add(offset)
	if !next.After(now) {
		next = next.Add(interval)
	}
	return next.UTC()
}

// Receipt returns what identifies the last list and the versions of the watch: if it is w.Received, all of
// them have the list already.
func (w Watch) Receipt() Mark {
	versions := each.Texts(w.Versions)
	slices.Sort(versions)
	return markOf([]byte(strings.Join(append([]string{string(w.Seen[0])}, versions...), "\n")))
}

// MayNotify reports whether a notice about the remote may be sent now.
func (w Watch) MayNotify(now time.Time) bool { return now.Sub(w.NotifiedAt) >= noticeEvery }

// whole returns the mark of all that the list shows.
func (l List) whole() Mark { return markOf([]byte(l.Mark + l.ContextMark)) }
