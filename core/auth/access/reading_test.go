package access_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// heldSessions is a store that reads a session and then blocks until the test lets it return.
type heldSessions struct {
	authstore.Sessions
	release chan struct{}
	err     error // of the first reading

	mu    sync.Mutex
	reads int
}

func (h *heldSessions) Get(ctx context.Context, id auth.SessionID) (auth.Session, error) {
	h.mu.Lock()
	h.reads++
	first := h.reads == 1
	h.mu.Unlock()
	s, err := h.Sessions.Get(ctx, id)
	if first {
		<-h.release
		if h.err != nil {
			return auth.Session{}, h.err
		}
	}
	return s, err
}

// parallelChecks checks one token several times at once, while the first read is blocked.
type parallelChecks struct {
	*fixture
	held    *heldSessions
	checker *access.Checker
	errs    []error
	done    sync.WaitGroup
}

func startChecks(ctx context.Context, t *testing.T, callers int) *parallelChecks {
	t.Helper()
	fx := newFixture(t)
	c := &parallelChecks{
		fixture: fx, held: &heldSessions{Sessions: fx.store.Sessions, release: make(chan struct{})},
		errs: make([]error, callers),
	}
	c.checker = access.NewChecker(testVerifier{user: user}, c.held, fx.cache, nil, fx.clock, func() uint64 { return 0 }, nil)
	for i := range callers {
		c.done.Go(func() { _, c.errs[i] = c.checker.Check(ctx, auth.AccessToken(id)) })
		synctest.Wait()
	}
	return c
}

func (c *parallelChecks) finish() {
	close(c.held.release)
	c.done.Wait()
}

func TestChecksAtOnceReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startChecks(context.Background(), t, 10)
		c.finish()
		if err := errors.Join(c.errs...); err != nil {
			t.Error(err)
		}
		if c.held.reads != 1 {
			t.Errorf("%d readings, want one", c.held.reads)
		}
	})
}

// TestFailureOfAnotherIsNotShared checks that the waiting checks read the session themselves.
func TestFailureOfAnotherIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startChecks(context.Background(), t, 5)
		c.held.err = fault.New(fault.Unavailable, "the records are away")
		c.finish()
		if !fault.Is(c.errs[0], fault.Unavailable) {
			t.Errorf("the check whose reading failed: %v", c.errs[0])
		}
		if err := errors.Join(c.errs[1:]...); err != nil {
			t.Errorf("those that waited: %v", err)
		}
	})
}

// TestSessionThatEndsDuringTheReading checks that the waiting checks see the end of the session,
// although the read began before it.
func TestSessionThatEndsDuringTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c := startChecks(ctx, t, 5)
		c.clock.Advance(time.Millisecond)
		if _, err := c.store.End(ctx, authstore.SessionFilter{UserID: user}, c.clock.Now(),
			auth.EndSignOut); err != nil {
			t.Fatal(err)
		}
		c.cache.Drop(ctx, id)
		c.finish()
		for _, err := range c.errs[1:] {
			wantFault(t, "a check that waited", err, auth.CodeInvalidToken)
		}
	})
}

func TestCallerGoesAwayWhileAnotherReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(context.Background())
		c := startChecks(ctx, t, 2)
		leave()
		synctest.Wait() // the one that waited has read for itself and is gone
		if c.held.reads != 2 || c.errs[1] == nil {
			t.Errorf("%d readings, error %v, want that of a caller who has gone", c.held.reads, c.errs[1])
		}
		c.finish()
	})
}
