package registrystoretest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/await"
)

// ChangesStores are an empty store as two processes use it.
type ChangesStores struct {
	Own     ServerStores
	Other   ServerStores
	Changes registrystore.Changes           // of the own process
	Alter   func(ctx context.Context) error // commits something else than a version or a view
	// OwnViews and OtherViews are the views of the store, as each process uses them.
	OwnViews, OtherViews registrystore.Views
}

// RunChanges runs the tests of what a process knows of changes. open is called for each test.
func RunChanges(t *testing.T, open func(t *testing.T) ChangesStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, o openedChanges){
		"each change gives a new revision":                                          revisionsDiffer,
		"a change of this process changes its hint":                                 hintsOfOwnChanges,
		"a change of another process ends the use of a revision":                    changesOfOthers,
		"removed names are reported since a position":                               namesOfRemovals,
		"a process reports that it has forgotten removals after many of them":       manyRemovals,
		"two reads with equal revisions see the same records":                       equalRevisions,
		"a change is in the revisions that are read after it, also by many callers": parallelRevisions,
		"each change of a view or of a token gives a new revision":                  changesOfViews,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			part(t, openedChanges{s, opened{s.Own}, opened{s.Other}})
		})
	}
}

type openedChanges struct {
	ChangesStores

	own, other opened
}

func (o openedChanges) revision(t *testing.T) registrystore.Revision {
	t.Helper()
	r, err := o.Changes.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func revisionsDiffer(t *testing.T, o openedChanges) {
	t.Helper()
	if v := o.Changes.ValidFor(); v <= 0 || v > time.Second {
		t.Errorf("a revision is valid for %v", v)
	}
	r := release(t, "com.example/a", "1.0.0", 1)
	refused := errors.New("refused")
	for _, step := range []struct {
		name             string
		change           func() error
		differs, removes bool
	}{
		{"nothing", func() error { return nil }, false, false},
		{"another table", func() error { return o.Alter(t.Context()) }, false, false},
		{"publication", func() error { return o.own.save(t.Context(), published(latest(r))) }, true, false},
		{"publication by another process", func() error {
			return o.other.save(t.Context(), published(release(t, "com.example/b", "1.0.0", 2)))
		}, true, false},
		{"rolled back", func() error {
			err := o.Own.Runner.Atomically(t.Context(), func(ctx context.Context) error {
				if _, err := o.Own.Writer.Lock(ctx, r.Name); err != nil {
					return err
				}
				return errors.Join(o.Own.Writer.Save(ctx, []registrystore.Change{
					published(release(t, "com.example/a", "2.0.0", 3)),
				}), refused)
			})
			if errors.Is(err, refused) {
				return nil
			}
			return errors.New("it was not rolled back")
		}, false, false},
		{"deprecation", func() error {
			return o.own.save(t.Context(), state(status(latest(r), registry.StatusDeprecated, "old", 4)))
		}, true, false},
		{"deletion by another process", func() error {
			return o.other.save(t.Context(), state(status(latest(r), registry.StatusDeleted, "", 5)))
		}, true, true},
		{
			"change of a deleted version", func() error {
				return o.own.save(t.Context(), state(status(latest(r), registry.StatusDeleted, "x", 6)))
			}, true, false,
		},
		{
			"return", func() error {
				return o.own.save(t.Context(), state(status(latest(r), registry.StatusActive, "", 7)))
			}, true, false,
		},
		{
			"deletion", func() error {
				return o.own.save(t.Context(), state(status(latest(r), registry.StatusDeleted, "", 8)))
			}, true, true,
		},
	} {
		before := o.revision(t)
		if err := step.change(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		after := o.revision(t)
		if (after != before) != step.differs || (after.Removals != before.Removals) != step.removes {
			t.Errorf("%s: the revision was %+v and is %+v", step.name, before, after)
		}
	}
}

func hintsOfOwnChanges(t *testing.T, o openedChanges) {
	t.Helper()
	for n := range 3 {
		before := o.Changes.Hint()
		o.own.saved(t, published(release(t, "com.example/a", strconv.Itoa(n)+".0.0", n)))
		if o.Changes.Hint() == before {
			t.Errorf("the hint is still %d after publication %d", before, n)
		}
	}
}

// changesOfOthers checks that a revision is not used any longer after a change by another process:
// either its time is over, or the hint has changed.
func changesOfOthers(t *testing.T, o openedChanges) {
	t.Helper()
	for n := range 3 {
		hint, known := o.Changes.Hint(), o.revision(t)
		read := time.Now()
		o.other.saved(t, published(release(t, "com.example/a", strconv.Itoa(n)+".0.0", n)))
		o.awaitInvalid(t, hint, read)
		if o.revision(t) == known {
			t.Errorf("the revision is still %+v after publication %d", known, n)
		}
	}
}

// awaitInvalid waits until a revision that was read at a time, with a hint, is not used any longer.
func (o openedChanges) awaitInvalid(t *testing.T, hint uint64, read time.Time) {
	t.Helper()
	await.Until(t, "the end of a revision", func() bool {
		return o.Changes.Hint() != hint || time.Since(read) >= o.Changes.ValidFor()
	})
}

// position returns the present position of removals.
func (o openedChanges) position() uint64 {
	_, position, _ := o.Changes.Removals(math.MaxUint64)
	return position
}

func namesOfRemovals(t *testing.T, o openedChanges) {
	t.Helper()
	now := time.Now()
	begin := o.position()
	for _, c := range []struct {
		by     opened
		server string
	}{{o.own, "com.example/a"}, {o.other, "com.example/b"}, {o.other, "com.example/c"}, {o.own, "com.example/d"}} {
		r := release(t, c.server, "1.0.0", 1)
		o.own.saved(t, published(r))
		o.revision(t)
		before := o.position()
		if names, _, complete := o.Changes.Removals(before); len(names) != 0 || !complete {
			t.Errorf("removals before one: %q, complete: %t", names, complete)
		}
		r.Status, r.UpdatedAt, r.StatusChangedAt = registry.StatusDeleted, now, now
		if err := c.by.save(t.Context(), state(r)); err != nil {
			t.Fatal(err)
		}
		o.revision(t)
		names, after, complete := o.Changes.Removals(before)
		if !slices.Contains(names, c.server) || !complete || after == before {
			t.Errorf("removals after that of %s: %q, complete: %t, position %d", c.server, names, complete, after)
		}
	}
	all, _, complete := o.Changes.Removals(begin)
	slices.Sort(all)
	if want := []string{
		"com.example/a", "com.example/b", "com.example/c", "com.example/d",
	}; !slices.Equal(slices.Compact(all), want) || !complete {
		t.Errorf("all removals: %q, complete: %t, want %q", all, complete, want)
	}
}

// manyRemovals checks that a process does not claim to know removals that it has forgotten.
func manyRemovals(t *testing.T, o openedChanges) {
	t.Helper()
	const versions, times = 100, 15
	begin := o.position()
	var added, deleted []registrystore.Change
	for n := range versions {
		r := release(t, "com.example/a", strconv.Itoa(n)+".0.0", n)
		added = append(added, published(r))
		deleted = append(deleted, state(status(r, registry.StatusDeleted, "", n)))
	}
	o.own.saved(t, added...)
	for range times {
		o.own.saved(t, deleted...)
	}
	if names, _, complete := o.Changes.Removals(begin); complete && len(names) < versions*times {
		t.Errorf("%d of %d removals are called complete", len(names), versions*times)
	}
	if _, _, complete := o.Changes.Removals(o.position()); !complete {
		t.Error("nothing after the present position is not complete")
	}
}

// equalRevisions reads records between two equal revisions while others write. The records of a
// revision are always the same.
func equalRevisions(t *testing.T, o openedChanges) {
	t.Helper()
	const publications = 60
	var writing sync.WaitGroup
	done := make(chan struct{})
	for w, by := range []opened{o.own, o.other, o.other} {
		writing.Go(func() {
			for n := range publications / 3 {
				if err := by.save(t.Context(),
					published(release(t, "com.example/s"+strconv.Itoa(w), strconv.Itoa(n)+".0.0", n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		writing.Wait()
		close(done)
	}()
	counts := map[registrystore.Revision]int{}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		before := o.revision(t)
		found := len(o.own.list(t, registrystore.Query{}))
		if o.revision(t) != before {
			continue
		}
		if known, ok := counts[before]; ok && known != found {
			t.Errorf("revision %+v has %d and %d records", before, known, found)
		}
		counts[before] = found
	}
	if got := counts[o.revision(t)]; got != publications {
		t.Errorf("the last revision has %d records, want %d", got, publications)
	}
}

// parallelRevisions checks that a change is in the revisions that are read after it while many
// callers read revisions all the time.
func parallelRevisions(t *testing.T, o openedChanges) {
	t.Helper()
	var reading sync.WaitGroup
	done := make(chan struct{})
	for range 6 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					o.revision(t)
				}
			}
		})
	}
	for n := range 60 {
		by := []opened{o.own, o.other}[n%2]
		before := o.revision(t)
		if err := by.save(t.Context(), published(release(t, "com.example/a", strconv.Itoa(n)+".0.0", n))); err != nil {
			t.Error(err)
			break
		}
		if o.revision(t) == before {
			t.Errorf("the revision is still %+v after publication %d", before, n)
		}
	}
	close(done)
	reading.Wait()
}

// changesOfViews checks that each change of a view or of a token gives another revision, and that a
// revision is not used any longer after it.
func changesOfViews(t *testing.T, o openedChanges) {
	t.Helper()
	team := newView(t, view.Draft{Name: "team"})
	for _, by := range []registrystore.Views{o.OwnViews, o.OtherViews} {
		for i, change := range []func() error{
			func() error { return by.Put(t.Context(), team) },
			func() error { return by.AddToken(t.Context(), newViewToken("team", "a", 1)) },
			func() error { return by.RemoveToken(t.Context(), "team", "a") },
			func() error { return by.AddToken(t.Context(), newViewToken("team", "b", 2)) },
			func() error { return by.Remove(t.Context(), "team") },
		} {
			hint, known, read := o.Changes.Hint(), o.revision(t), time.Now()
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if by == o.OwnViews && o.Changes.Hint() == hint {
				t.Errorf("the hint is still %d after own change %d", hint, i)
			}
			o.awaitInvalid(t, hint, read)
			after := o.revision(t)
			if after.Views == known.Views || after.Changes != known.Changes || after.Removals != known.Removals {
				t.Errorf("the revision was %+v and is %+v after change %d", known, after, i)
			}
		}
	}
}
