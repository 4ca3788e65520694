package registrystoretest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const writers = 20

var errTaken = errors.New("this version is there already")

// publishesVersionInParallel publishes one version many times at once, as a use case does: it
// looks first at what is there.
func publishesVersionInParallel(t *testing.T, o opened) {
	t.Helper()
	var won, lost atomic.Int32
	var all sync.WaitGroup
	for w := range writers {
		r := release(t, "com.example/a", "1.0.0", w)
		all.Go(func() {
			err := o.publish(t.Context(), r, func(before []registry.Release) error {
				if len(before) > 0 {
					return errTaken
				}
				return nil
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, errTaken):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != writers-1 {
		t.Errorf("%d of %d publications succeeded, %d found the version taken", won.Load(), writers, lost.Load())
	}
	if got := o.versions(t, "com.example/a", true); len(got) != 1 {
		t.Errorf("stored are %q", keys(got))
	}
}

// publishesVersionsInParallel publishes many versions of a new server at once, while a
// reader watches that exactly one is latest as soon as there is one.
func publishesVersionsInParallel(t *testing.T, o opened) {
	t.Helper()
	done := make(chan struct{})
	var watcher, all sync.WaitGroup
	watcher.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				o.watch(t)
			}
		}
	})
	for w := range writers {
		r := release(t, "com.example/a", fmt.Sprintf("%d.0.0", w), w)
		all.Go(func() {
			if err := o.publish(t.Context(), r, func([]registry.Release) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(done)
	watcher.Wait()
	o.watch(t)
	if got := o.versions(t, "com.example/a", true); len(got) != writers {
		t.Errorf("%d versions are stored, want %d", len(got), writers)
	}
}

func (o opened) watch(t *testing.T) {
	t.Helper()
	got, err := o.Reader.List(t.Context(), registrystore.Query{Limit: 2 * writers})
	if err != nil {
		t.Error(err)
		return
	}
	flags := 0
	for _, r := range got.Records {
		if r.Latest {
			flags++
		}
	}
	if len(got.Records) > 0 && flags != 1 {
		t.Errorf("%d of %d versions are latest at once", flags, len(got.Records))
	}
}

// claimsURLInParallel publishes many servers with one address at once.
func claimsURLInParallel(t *testing.T, o opened) {
	t.Helper()
	var won atomic.Int32
	var all sync.WaitGroup
	for w := range writers {
		change := published(release(t, fmt.Sprintf("com.example/s%d", w), "1.0.0", 0), address)
		all.Go(func() {
			switch err := o.save(t.Context(), change); {
			case err == nil:
				won.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d servers have one address", won.Load())
	}
	if got := o.list(t, registrystore.Query{Deleted: true}); len(got) != 1 {
		t.Errorf("stored are %q", keys(got))
	}
}

// claimsURLsWithoutDeadlock publishes servers that claim two addresses in opposite orders, which
// must not lead to a deadlock.
func claimsURLsWithoutDeadlock(t *testing.T, o opened) {
	t.Helper()
	var all sync.WaitGroup
	for w := range writers {
		addresses := []registry.RemoteURL{address, "https://two.example/mcp"}
		if w%2 == 1 {
			slices.Reverse(addresses)
		}
		change := published(release(t, fmt.Sprintf("com.example/s%d", w), "1.0.0", 0), addresses...)
		all.Go(func() {
			if err := o.save(t.Context(), change); err != nil && !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := o.list(t, registrystore.Query{}); len(got) != 1 {
		t.Errorf("stored are %q", keys(got))
	}
}
