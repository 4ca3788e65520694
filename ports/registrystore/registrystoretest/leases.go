package registrystoretest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// leaseStore is a store of something that one holder at a time has the lease of. Its methods are
// those of the store for one mirror or one webhook.
type leaseStore struct {
	lease   func(ctx context.Context, l registrystore.Lease) (bool, error)
	release func(ctx context.Context, holder string) error
}

// take returns whether a holder gets the lease n seconds after the epoch, for a minute.
func (s leaseStore) take(t *testing.T, holder string, n int) bool {
	t.Helper()
	now := epoch.Add(time.Duration(n) * time.Second)
	ok, err := s.lease(t.Context(), registrystore.Lease{Holder: holder, Now: now, Until: now.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// testOneHolder checks that one holder at a time has the lease, until it ends or is released.
func (s leaseStore) testOneHolder(t *testing.T) {
	t.Helper()
	for i, step := range []struct {
		holder string
		after  int // seconds
		want   bool
	}{
		{"x", 0, true}, {"y", 59, false}, {"x", 30, true}, {"y", 60, false}, {"y", 89, false}, {"y", 90, true}, {
			"x", 91, false,
		},
	} {
		if got := s.take(t, step.holder, step.after); got != step.want {
			t.Errorf("step %d: %+v got the lease: %v", i, step, got)
		}
	}
	if err := s.release(t.Context(), "x"); err != nil || s.take(t, "x", 100) {
		t.Errorf("another one's release, error %v, ended the lease", err)
	}
	if err := s.release(t.Context(), "y"); err != nil || !s.take(t, "x", 100) {
		t.Errorf("the release of the holder, error %v, did not end the lease", err)
	}
}

// testHolderAhead checks that the lease of a holder whose clock was ahead ends. The lease is free
// or that of x.
func (s leaseStore) testHolderAhead(t *testing.T) {
	t.Helper()
	if err := s.release(t.Context(), "x"); err != nil || !s.take(t, "ahead", 3600) || s.take(t, "x", 3540) ||
		!s.take(t, "x", 3539) {
		t.Errorf("error %v; the lease of a holder whose clock was ahead did not end", err)
	}
}

// testParallelHolders checks that one of several holders gets the lease.
func (s leaseStore) testParallelHolders(t *testing.T) {
	t.Helper()
	var got atomic.Int32
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			ok, err := s.lease(t.Context(), registrystore.Lease{
				Holder: fmt.Sprint(i), Now: epoch, Until: epoch.Add(time.Minute),
			})
			if err != nil {
				t.Error(err)
			}
			if ok {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d holders got the lease", got.Load())
	}
}
