package deciding

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
)

// Record writes what is due, as Run does.
func (s *Service) Record(all bool) {
	s.record(context.Background(), &s.ledger, all)
	s.record(context.Background(), &s.seen, all)
}

// Counting counts the calls of one server.
type Counting struct{ callCounters }

// NewCounting returns the counters of a server.
func NewCounting(server string) *Counting {
	return &Counting{callCounters{by: map[string]*callCounter{server: {}}}}
}

// Note counts a call of the server.
func (c *Counting) Note(server string, e access.Effect) { c.by[server].note(e) }

// Take returns what is not stored; PutBack undoes that.
func (c *Counting) Take() []accessstore.Calls        { return c.take() }
func (c *Counting) PutBack(some []accessstore.Calls) { c.putBack(some) }
