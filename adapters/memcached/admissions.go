package memcached

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// admissions lets one call at a time decide about a key. Hits that come meanwhile wait, and the
// next call decides about all of them in their order, on one read and one compare-and-swap. So the
// number of hits of a key is not limited by the time that a call takes. Keys share slots.
type admissions struct {
	seed  maphash.Seed
	slots [1024]admissionSlot
}

// admissionSlot is the state of the keys of one slot.
type admissionSlot struct {
	mutex   sync.Mutex
	busy    bool
	waiting []*admissionTicket
}

// admissionTicket is the hits of one call in one slot. Its results and err are set when done is
// closed.
type admissionTicket struct {
	batch
	indices []int // of the hits in the call
	slot    *admissionSlot
	done    chan struct{}
	err     error
}

func newAdmissions() *admissions { return &admissions{seed: maphash.MakeSeed()} }

// run decides about hits that are not of fixed windows. If ctx ends first, hits that wait for
// another call are not counted, unless that call has begun to decide about them.
func (s *admissions) run(ctx context.Context, c *Client, b batch) error {
	var own, others []*admissionTicket
	for _, t := range s.newTickets(b) {
		if t.slot.enter(t) {
			own = append(own, t)
		} else {
			others = append(others, t)
		}
	}
	var err error
	if len(own) > 0 {
		err = c.decideTickets(ctx, own)
		for _, t := range own {
			t.slot.leave(c)
		}
	}
	for _, t := range others {
		if failed := t.wait(ctx); err == nil {
			err = failed
		}
	}
	if err != nil {
		return err
	}
	for _, t := range append(own, others...) {
		for i, at := range t.indices {
			b.results[at] = t.results[i]
		}
	}
	return nil
}

// newTickets returns a ticket for each slot that the hits need.
func (s *admissions) newTickets(b batch) []*admissionTicket {
	var tickets []*admissionTicket
	bySlot := map[*admissionSlot]*admissionTicket{}
	for i := range b.hits {
		slot := &s.slots[maphash.String(s.seed, b.hits[i].Key)%uint64(len(s.slots))]
		t := bySlot[slot]
		if t == nil {
			t = &admissionTicket{slot: slot, done: make(chan struct{})}
			bySlot[slot], tickets = t, append(tickets, t)
		}
		t.hits, t.indices = append(t.hits, b.hits[i]), append(t.indices, i)
	}
	return tickets
}

// decideTickets decides about the hits of several tickets together.
func (c *Client) decideTickets(ctx context.Context, tickets []*admissionTicket) error {
	var hits []counter.Hit
	for _, t := range tickets {
		hits = append(hits, t.hits...)
	}
	all := newBatch(hits)
	err := c.decideAll(ctx, all)
	from := 0
	for _, t := range tickets {
		to := from + len(t.hits)
		t.results, t.err = all.results[from:to], err
		from = to
	}
	return err
}

// wait waits until another call has decided about the ticket.
func (t *admissionTicket) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		t.slot.mutex.Lock()
		defer t.slot.mutex.Unlock()
		t.slot.waiting = slices.DeleteFunc(t.slot.waiting, func(other *admissionTicket) bool { return other == t })
		return storeUnavailable(errTimeout)
	}
}

// enter reports whether the caller must decide about the ticket, and then call leave. Otherwise
// another call will.
func (s *admissionSlot) enter(t *admissionTicket) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.busy {
		s.waiting = append(s.waiting, t)
		return false
	}
	s.busy = true
	return true
}

// leave makes the slot free. Tickets that wait are decided in a new goroutine, because the caller
// has its own result.
func (s *admissionSlot) leave(c *Client) {
	if tickets := s.takeWaiting(); len(tickets) > 0 {
		go s.decideWaiting(c, tickets)
	}
}

// decideWaiting decides about tickets until no ticket waits. No caller ends that, because they are
// of several.
func (s *admissionSlot) decideWaiting(c *Client, tickets []*admissionTicket) {
	for ; len(tickets) > 0; tickets = s.takeWaiting() {
		_ = c.decideTickets(c.deadlines.Call(context.Background(), time.Now()), tickets) // the error is in the tickets
		for _, t := range tickets {
			close(t.done)
		}
	}
}

// takeWaiting returns the tickets that wait. If no ticket waits, the slot becomes free.
func (s *admissionSlot) takeWaiting() []*admissionTicket {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	tickets := s.waiting
	s.waiting = nil
	s.busy = len(tickets) > 0
	return tickets
}
