package deciding

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
)

// The bounds of the calls that are kept to be replayed: kinds of calls in a generation, for how long they are
// counted, and how long their names may be.
const (
	maxHeard  = 1000
	heardFor  = 12 * time.Hour
	maxHeardN = 400
)

// heardKind is what calls have in common that are counted as one.
type heardKind struct {
	who                              access.SubjectKind
	id, client, server, method, tool string
}

// heardCall is a kind of calls. One of them represents all.
type heardCall struct {
	heardKind

	question access.Question
	calls    atomic.Int64
	counter  *callCounter // of the server; nil if that is not listed
}

// heardCalls are the calls that this instance decided lately.
type heardCalls = recent.Memory[heardKind, *heardCall]

// hear keeps a call, and returns the counter of its server, or nil. Of strangers, who can name any tool, a server is one
// kind.
func (s *Service) hear(q *access.Question, snapshot *access.Snapshot, a *Answer) *callCounter {
	server := cmp.Or(a.Server, q.Address.Host)
	k := heardKind{q.Subject.Kind(), q.Subject.ID(), q.Subject.Client(), server, q.Call.Method, q.Call.Tool()}
	if k.who == access.Anonymous {
		k.method, k.tool = "", ""
	}
	h, known := s.heard.Get(k)
	if !known || q.At.Sub(h.question.At) > heardFor {
		if len(server)+len(q.Call.Method)+len(q.Call.Name) > maxHeardN {
			return nil
		}
		subject := *q.Subject
		h = &heardCall{question: *q, heardKind: k, counter: s.counterOf(snapshot, a.Server)}
		h.question.Subject, h.question.Call.ID, h.question.Call.Mark = &subject, nil, nil
		s.heard.Put(k, h, 1, q.At, recent.Bounds{Size: maxHeard, Age: heardFor})
	}
	h.calls.Add(1)
	return h.counter
}

// Replay says how calls that this instance decided lately, at most a day ago, would be decided with another
// rule. It knows no calls of other instances or from before its start.
type Replay struct {
	Since   time.Time // of the first call; zero without any
	Calls   int64
	Changed []ReplayedCall // that are decided otherwise, the most frequent first
}

// ReplayedCall are calls of a subject that are decided otherwise.
type ReplayedCall struct {
	Subject, Server, Tool string
	Calls                 int64
	Before, After         access.Effect
}

// Replay decides the calls of the last day by the rules with another one, which is not stored.
func (s *Service) Replay(ctx context.Context, next *access.Rule) (Replay, error) {
	var r Replay
	before, err := s.newest(ctx)
	if err != nil {
		return r, err
	}
	after, now := before.WithRule(next), s.ports.Clock.Now()
	for _, h := range s.heard.Values() {
		q, calls := h.question, h.calls.Load()
		if now.Sub(q.At) > 2*heardFor {
			continue
		}
		if r.Calls += calls; r.Since.IsZero() || q.At.Before(r.Since) {
			r.Since = q.At
		}
		q.At = now
		was, is := before.Decide(&q), after.Decide(&q)
		if was.Effect != is.Effect {
			r.Changed = append(r.Changed, ReplayedCall{q.Subject.String(), h.server, q.Call.Tool(), calls, was.Effect, is.Effect})
		}
	}
	slices.SortFunc(r.Changed, func(a, b ReplayedCall) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Subject+a.Server+a.Tool, b.Subject+b.Server+b.Tool))
	})
	return r, nil
}

// Names returns what access.Snapshot.Names does.
func (s *Service) Names(ctx context.Context) (servers, tools []string, err error) {
	snapshot, err := s.newest(ctx)
	if err == nil {
		servers, tools = snapshot.Names()
	}
	return servers, tools, err
}

// Doubts returns in sentences which names of a rule nothing has. known are subjects that exist: all groups
// that were seen, and some people and service accounts.
func (s *Service) Doubts(ctx context.Context, r *access.Rule, known []string) (doubts []string, err error) {
	words := map[access.SelectorKind]string{access.SelectPerson: "active person", access.SelectService: "active service account", access.SelectGroup: "group"}
	for _, one := range r.Subjects {
		if words[one.Kind] == "" || slices.Contains(known, one.String()) {
			continue
		}
		_, err := s.ports.Members.FindNamed(ctx, one) // no group, which known has if it exists
		if one.Kind == access.SelectGroup || fault.Is(err, fault.NotFound) {
			doubts = append(doubts, access.Doubt(words[one.Kind], string(one.Kind)+":", one.Value, known))
		} else if err != nil {
			return nil, err
		}
	}
	snapshot, err := s.newest(ctx)
	if err == nil {
		doubts = append(doubts, snapshot.Unknown(r)...)
	}
	return doubts, err
}
