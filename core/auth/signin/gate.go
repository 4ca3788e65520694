package signin

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxWaiting is how many logins may wait for one subject at once.
const maxWaiting = 256

// gate lets one login of a subject pass at a time in this process, so that a flood of guesses at one account takes neither the
// whole queue of the password hasher nor all connections to the database, and guesses that come after a lock are refused without
// a hash. It is not what bounds guessing: see package lockout.
type gate struct {
	mu    sync.Mutex
	lanes map[auth.LockoutKey]*lane
}

// lane is the queue of one subject.
type lane struct {
	turn  chan struct{} // holds one element while nobody is inside
	users int           // inside and waiting
}

func newGate() *gate { return &gate{lanes: map[auth.LockoutKey]*lane{}} }

// enter waits for the subject's turn; leave must be called after. It fails with fault.Unavailable when too many wait, and with
// the context's error when it ends first.
func (g *gate) enter(ctx context.Context, key auth.LockoutKey) (leave func(), err error) {
	l, err := g.join(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{}; g.part(key, l) }, nil
	case <-ctx.Done():
		g.part(key, l)
		return nil, ctx.Err()
	}
}

func (g *gate) join(key auth.LockoutKey) (*lane, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[key]
	if l == nil {
		l = &lane{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		g.lanes[key] = l
	}
	if l.users >= maxWaiting {
		return nil, fault.New(fault.Unavailable, "", "too many sign-ins of this account at once").After(time.Second)
	}
	l.users++
	return l, nil
}

func (g *gate) part(key auth.LockoutKey, l *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.users--
	if l.users == 0 {
		delete(g.lanes, key)
	}
}
