// Package grantstoretest is the contract of ports/grantstore: every adapter of
// that port passes Run.
package grantstoretest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/grantstore"
)

// Opened is an empty store of an adapter.
type Opened struct {
	Grants grantstore.Store
}

// Run checks an adapter. open is called for every part of the contract.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	t.Helper()
	parts := map[string]func(t *testing.T, s grantstore.Store){
		"an empty store":               emptyStore,
		"adding twice is adding once":  addTwice,
		"removing":                     removing,
		"ordered bytewise":             ordered,
		"pages to the end":             pages,
		"parallel writers of one":      parallel,
		"the end of a context is told": endedContext,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t).Grants) })
	}
}

func emptyStore(t *testing.T, s grantstore.Store) {
	t.Helper()
	of(t, s, "somebody")
	if got := list(t, s, registry.Grant{}, 10); len(got) != 0 {
		t.Errorf("an empty store lists %v", got)
	}
	if err := s.Remove(t.Context(), grant(t, "a", registry.ActionEdit, "*")); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing from an empty store: %v", err)
	}
}

func addTwice(t *testing.T, s grantstore.Store) {
	t.Helper()
	g := grant(t, "a", registry.ActionEdit, "com.example/*")
	add(t, s, g)
	if err := s.Add(t.Context(), g); !fault.Is(err, fault.Conflict) {
		t.Errorf("adding again: %v, want a fault of kind Conflict", err)
	}
	of(t, s, "a", g)
}

func removing(t *testing.T, s grantstore.Store) {
	t.Helper()
	edit, publish := grant(t, "a", registry.ActionEdit, "*"), grant(t, "a", registry.ActionPublish, "*")
	add(t, s, edit, publish)
	if err := s.Remove(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	of(t, s, "a", publish)
	if err := s.Remove(t.Context(), edit); !fault.Is(err, fault.NotFound) {
		t.Errorf("removing again: %v", err)
	}
}

// inOrder are grants in the order of the port: by bytes, so that capitals come
// first, whatever a locale thinks of it.
func inOrder(t *testing.T) []registry.Grant {
	t.Helper()
	return []registry.Grant{
		grant(t, "B", registry.ActionEdit, "com.example/*"),
		grant(t, "a", registry.ActionEdit, "*"),
		grant(t, "a", registry.ActionEdit, "com.example/A"),
		grant(t, "a", registry.ActionEdit, "com.example/Z_*"),
		grant(t, "a", registry.ActionEdit, "com.example/a"),
		grant(t, "a", registry.ActionPublish, "*"),
		grant(t, "a-b", registry.ActionEdit, "*"),
		grant(t, "aa", registry.ActionEdit, "*"),
	}
}

func ordered(t *testing.T, s grantstore.Store) {
	t.Helper()
	want := inOrder(t)
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	add(t, s, backwards...)
	if got := list(t, s, registry.Grant{}, 100); !slices.Equal(got, want) {
		t.Errorf("listed are\n%v, want\n%v", got, want)
	}
	of(t, s, "a", want[1:6]...)
}

func pages(t *testing.T, s grantstore.Store) {
	t.Helper()
	want := inOrder(t)
	add(t, s, want...)
	for size := 1; size <= len(want); size++ {
		var got []registry.Grant
		for after := (registry.Grant{}); ; after = got[len(got)-1] {
			page := list(t, s, after, size)
			if got = append(got, page...); len(page) < size {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d give\n%v, want\n%v", size, got, want)
		}
	}
}

func parallel(t *testing.T, s grantstore.Store) {
	t.Helper()
	g := grant(t, "a", registry.ActionEdit, "*")
	var all sync.WaitGroup
	var added atomic.Int32
	for range 10 {
		all.Go(func() {
			switch err := s.Add(t.Context(), g); {
			case err == nil:
				added.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := added.Load(); n != 1 {
		t.Errorf("%d of 10 callers added the same grant, want 1", n)
	}
	of(t, s, "a", g)
}

func endedContext(t *testing.T, s grantstore.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := grant(t, "a", registry.ActionEdit, "*")
	_, ofErr := s.Of(ctx, "a")
	_, listErr := s.List(ctx, registry.Grant{}, 10)
	for call, err := range map[string]error{"add": s.Add(ctx, g), "remove": s.Remove(ctx, g), "of": ofErr, "list": listErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", call, err)
		}
	}
	of(t, s, "a")
}

func grant(t *testing.T, holder registry.Holder, action registry.Action, pattern string) registry.Grant {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return registry.Grant{Holder: holder, Action: action, Pattern: p}
}

func add(t *testing.T, s grantstore.Store, grants ...registry.Grant) {
	t.Helper()
	for _, g := range grants {
		if err := s.Add(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, s grantstore.Store, after registry.Grant, limit int) []registry.Grant {
	t.Helper()
	got, err := s.List(t.Context(), after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// of checks the grants of a holder.
func of(t *testing.T, s grantstore.Store, holder registry.Holder, want ...registry.Grant) {
	t.Helper()
	got, err := s.Of(t.Context(), holder)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the grants of %s are\n%v, want\n%v", holder, got, want)
	}
}
