package deciding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

const (
	// recordEvery is the time between two writes of events. A kind has one event in each minute that has
	// denials (contract Z-16).
	recordEvery = time.Second
	// turn is how much later than others an instance writes that has written the last event of a kind,
	// in seconds.
	turn = 3
	// recordTimeout limits how long one write may take.
	recordTimeout = 5 * time.Second
	// maxKinds is how many kinds of denials are kept, and maxShare how many of them one subject has.
	// Callers choose the names of tools, so that there can be any number. What exceeds these bounds is
	// counted without its tool, and what exceeds twice as many without its server.
	maxKinds = 500
	maxShare = 100
	// maxText is how much of a text of a caller an event has, in bytes.
	maxText = 200
	// maxAlso is how many other reasons of the denials that it counts an event has.
	maxAlso = 8
)

// RecordFailed is an event of a Service: denials could not be written to the audit log. They are
// kept, and the next attempt follows. It is reported once until a write succeeds.
type RecordFailed struct{ Err error }

// kind is what has at most one event a minute, of all instances: the id of the event is that of the kind
// and the minute, and there is one event with an id.
type kind struct {
	subject, server, tool string
	rest                  bool // of the denials for which there is no room: some of these texts are empty
}

// digest is the hash of a kind and a minute.
type digest [sha256.Size]byte

// Fill implements [secrets.Entropy].
func (d digest) Fill(p []byte) { copy(p, d[:]) }

func (k kind) eventID(minute int64) audit.EventID {
	text := fmt.Sprintf("access decision %q %q %q %v %d", k.subject, k.server, k.tool, k.rest, minute)
	return secrets.NewUUID[audit.EventID](digest(sha256.Sum256([]byte(text))))
}

// minuteOf returns the number of the minute of a time.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// tally has the denials of a kind since its last event.
type tally struct {
	last   int64         // the minute of the last event; 0 without one
	ours   bool          // this instance has written it
	id     audit.EventID // of the next event; empty if there are no denials
	minute int64         // of the next event
	count  int
	since  time.Time
	first  audit.Change // of the first denial
	why    string       // likewise
	also   []string     // other reasons
}

// ledger has the denials and challenges, or the tools of lists, whose events are not stored yet. It has no goroutine: Run
// writes them.
type ledger struct {
	mu      sync.Mutex
	tallies map[kind]*tally
	shares  map[string]int // how many tallies each subject has
	unsent  []unsent       // taken from the tallies; only Run uses it
	failing bool           // likewise: the last write failed
}

// unsent is an event that is not stored.
type unsent struct {
	kind

	tally tally
	tried bool // a write failed, which may have stored it all the same
}

// noteDenial counts a denial or a challenge, and returns the id of the event that will say so.
func (l *ledger) noteDenial(q *Question, a *Answer, now time.Time) audit.EventID {
	k := kind{subject: cutText(a.Subject.String()), server: cutText(a.Server)}
	if a.Subject.Kind() != access.Anonymous { // of strangers, the server is enough
		k.tool = cutText(q.Call.Tool())
	}
	why := string(a.Reason)
	if a.Rule != "" {
		why += " " + string(a.Rule)
	}
	return l.note(k, now, why, func(k kind) audit.Change {
		return audit.Change{Category: audit.AccessDecision, Failed: true, Details: describeDenial(k, q, a)}
	})
}

// actSeen is the action of the event of a tool in a list that passes, whose mark no approved list has.
const actSeen audit.Action = "tools_seen"

// noteSeen counts a tool of a list (contract W-8). What has one event a minute is a tool of a server, whoever lists it.
func (l *ledger) noteSeen(q *Question, a *Answer, now time.Time) {
	k := kind{subject: q.Server, server: q.Server, tool: cutText(q.Call.Tool())} // no subject of a denial is a name
	l.note(k, now, "", func(k kind) audit.Change {
		d := audit.Details{}
		d.Set(audit.DetailServer, k.server)
		if k.rest {
			d["others"] = audit.Flag(true)
		} else {
			mark := q.Call.Mark()
			d.Set("tool", k.tool)
			d.Set("mark", hex.EncodeToString(mark[:]))
			d.Set(audit.DetailActor, actorOf(q, a))
		}
		return audit.Change{Category: audit.RegistryChange, Action: actSeen, Details: d}
	})
}

// note counts what is of a kind, and returns the id of its event. describe returns the event of the first one, of the
// kind as which it counts.
func (l *ledger) note(k kind, now time.Time, why string, describe func(kind) audit.Change) audit.EventID {
	l.mu.Lock()
	defer l.mu.Unlock()
	k = l.room(k)
	t := l.tallies[k]
	if t == nil {
		t = &tally{}
		l.put(k, t)
	}
	if t.count++; t.count > 1 {
		t.addReason(why)
	} else {
		t.since, t.why, t.first = now, why, describe(k)
	}
	if t.id == "" {
		t.minute = max(minuteOf(now), t.last+1)
		t.id = k.eventID(t.minute)
	}
	return t.id
}

// room returns as what a denial counts, so that no caller takes the place of others: as its own kind, or
// as one with less of it.
func (l *ledger) room(k kind) kind {
	for n, k := range [...]kind{k, {subject: k.subject, server: k.server, rest: true}, {subject: k.subject, rest: true}} {
		if l.tallies[k] != nil || len(l.tallies) < (n+1)*maxKinds && l.shares[k.subject] < (n+1)*maxShare {
			return k
		}
	}
	return kind{rest: true}
}

func (l *ledger) put(k kind, t *tally) {
	if l.tallies == nil {
		l.tallies, l.shares = map[kind]*tally{}, map[string]int{}
	}
	if l.tallies[k] == nil {
		l.shares[k.subject]++
	}
	l.tallies[k] = t
}

func (l *ledger) drop(k kind) {
	delete(l.tallies, k)
	if l.shares[k.subject]--; l.shares[k.subject] == 0 {
		delete(l.shares, k.subject)
	}
}

// describeDenial returns the details of a denial, or a challenge, of a kind.
func describeDenial(k kind, q *Question, a *Answer) audit.Details {
	d := audit.Details{"effect": audit.Text(a.Effect), "reason": audit.Text(a.Reason)}
	if !k.rest || k.subject != "" {
		d.Set(audit.DetailActor, actorOf(q, a))
	}
	d.Set(audit.DetailServer, k.server)
	if k.rest {
		d["others"] = audit.Flag(true)
		return d
	}
	d.Set("tool", k.tool)
	d.Set("method", cutText(q.Call.Method))
	d.Set("rule", string(a.Rule))
	d.Set(authority.DetailClient, cutText(a.Subject.Client()))
	if k.server == "" {
		d.Set("host", cutText(q.Address.Host))
	}
	if a.Required != 0 {
		d["requiredTrustLevel"] = audit.Text(a.Required.String())
	}
	if q.From.IsValid() {
		d["ipAddress"] = audit.Text(q.From.String())
	}
	return d
}

func (t *tally) addReason(why string) {
	if why != t.why && !slices.Contains(t.also, why) && len(t.also) < maxAlso {
		t.also = append(t.also, why)
	}
}

// actorOf returns who called as the audit log names people and service accounts; for others as
// access.Subject.String does.
func actorOf(q *Question, a *Answer) string {
	if who := q.Caller.Actor().Who; a.Subject.Kind() == access.Person && strings.HasPrefix(who, audit.PersonActor) {
		return who
	}
	return cutText(a.Subject.String())
}

// cutText returns the beginning of a text of a caller.
func cutText(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// take returns the events that are due, all of them at the end, and forgets the kinds whose minute
// has passed.
func (l *ledger) take(now time.Time, all bool) (due []unsent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	minute := minuteOf(now)
	for k, t := range l.tallies {
		switch {
		case t.id != "" && (all || t.isDue(now)):
			due = append(due, unsent{kind: k, tally: *t})
			*t = tally{last: max(minute, t.minute), ours: true}
		case t.id == "" && minute > t.last:
			l.drop(k)
		}
	}
	return due
}

// isDue reports whether it is time for the next event. Who has written the last one lets others write
// first, whose denials are not counted yet. A clock that was set back makes it due at once.
func (t *tally) isDue(now time.Time) bool {
	after := now.Unix() - t.minute*60
	return after >= turn || after >= 0 && !t.ours || after < -2*60
}

// putBack adds denials to those of the next event, because another instance has written the event with
// the id.
func (l *ledger) putBack(u *unsent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := u.tally
	next.last, next.ours = next.minute, false
	if t := l.tallies[u.kind]; t != nil {
		next.last = t.last
		if t.id != "" {
			next.count += t.count
			for _, why := range append([]string{t.why}, t.also...) {
				next.addReason(why)
			}
		}
	}
	next.minute = next.last + 1
	next.id = u.eventID(next.minute)
	l.put(u.kind, &next)
}

// change returns the event of a tally.
func (t *tally) change() audit.Change {
	c, d := t.first, t.first.Details
	if t.count > 1 {
		d["count"], d["firstAt"] = audit.Number(t.count), audit.Text(t.since.UTC().Format(time.RFC3339))
	}
	if len(t.also) > 0 {
		d["otherReasons"] = audit.Texts(t.also)
	}
	c.ID = t.id
	return c
}

// Run writes events of denials and challenges, and of tools in lists that pass, to the audit log until the context ends, and then those
// that are left; and the numbers of calls. Nothing must be decided after that.
func (s *Service) Run(ctx context.Context) {
	all := [...]*ledger{&s.ledger, &s.seen}
	for s.ports.Waiter.Wait(ctx, recordEvery) {
		for _, l := range all {
			s.record(ctx, l, false)
		}
		s.storeCalls(ctx, false)
	}
	s.storeCalls(ctx, true)
	for _, l := range all {
		for i := 0; i < rounds && !l.failing; i++ {
			s.record(context.WithoutCancel(ctx), l, true)
		}
	}
}

// rounds is how often events are written at the end: other instances may have written those of the
// same minutes.
const rounds = 3

// record writes what is due. While it cannot, the tallies count on.
func (s *Service) record(ctx context.Context, l *ledger, all bool) {
	if len(l.unsent) == 0 || all {
		l.unsent = append(l.unsent, l.take(s.ports.Clock.Now(), all)...)
	}
	if len(l.unsent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	err := s.write(ctx, l)
	if err != nil && !l.failing {
		s.ports.Reporter.Report(RecordFailed{err})
	}
	l.failing = err != nil
}

// write writes the events: at once, or one by one if that failed.
func (s *Service) write(ctx context.Context, l *ledger) error {
	if !l.failing {
		changes := make([]audit.Change, len(l.unsent))
		for i := range l.unsent {
			changes[i] = l.unsent[i].tally.change()
		}
		err := s.ports.Recorder.RecordChanges(ctx, changes...)
		if err == nil {
			l.unsent = nil
			return nil
		}
		if !fault.Is(err, fault.Conflict) {
			for i := range l.unsent {
				l.unsent[i].tried = true
			}
			return err
		}
	}
	for len(l.unsent) > 0 {
		u := &l.unsent[0]
		err := s.ports.Recorder.RecordChanges(ctx, u.tally.change())
		switch {
		case err == nil:
		case !fault.Is(err, fault.Conflict):
			u.tried = true
			return err
		case !u.tried:
			l.putBack(u)
		}
		l.unsent = l.unsent[1:]
	}
	return nil
}
