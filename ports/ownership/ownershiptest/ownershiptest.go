// Package ownershiptest is the contract suite of the ownership port: every adapter, and through the SDK every plugin, runs it.
// It tests what all checkers share, not how a package registry is read.
package ownershiptest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

// parallel is how many checks the suite has in flight at once.
const parallel = 8

// Subject is a checker under test, before a package registry whose packages are known.
type Subject struct {
	Checker ownership.Checker
	// Owned is borne out by the registry.
	Owned ownership.Claim
	// Refused are claims that the registry does not bear out, by the reason: no such package, no such version, not claimed.
	Refused map[string]ownership.Claim
	// Transient is a claim for which the registry gives no verdict, such as one that it answers with 503; nil where the
	// registry cannot be made to.
	Transient *ownership.Claim
	// RetryAfter is how long the registry asks to wait in its answer to Transient; 0 where it does not say.
	RetryAfter time.Duration
}

// Run runs the suite. open returns a fresh checker and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("accepts what is owned", func(t *testing.T) { acceptsOwned(t, open(t)) })
	t.Run("refuses what is not", func(t *testing.T) { refuses(t, open(t)) })
	t.Run("tells what is transient", func(t *testing.T) { tellsTransient(t, open(t)) })
	t.Run("refuses an incomplete claim", func(t *testing.T) { refusesIncomplete(t, open(t)) })
	t.Run("names the types it knows", func(t *testing.T) { namesTypes(t, open(t)) })
	t.Run("heeds a cancelled context", func(t *testing.T) { heedsCancel(t, open(t)) })
	t.Run("checks in parallel", func(t *testing.T) { checksInParallel(t, open(t)) })
}

func acceptsOwned(t *testing.T, s Subject) {
	if err := s.Checker.Check(t.Context(), s.Owned); err != nil {
		t.Errorf("Check(%+v) = %v, want none", s.Owned, err)
	}
}

func refuses(t *testing.T, s Subject) {
	seen := map[string]string{}
	for reason, claim := range s.Refused {
		err := s.Checker.Check(t.Context(), claim)
		if err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: Check = %v, want a fault of kind Invalid", reason, err)
			continue
		}
		if other, twice := seen[err.Error()]; twice {
			t.Errorf("%s and %s have the same sentence %q, want them told apart", reason, other, err)
		}
		seen[err.Error()] = reason
	}
}

func tellsTransient(t *testing.T, s Subject) {
	if s.Transient == nil {
		t.Skip("this registry has no transient failure to show")
	}
	err := s.Checker.Check(t.Context(), *s.Transient)
	if err == nil || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Check = %v, want a fault of kind Unavailable", err)
	}
	if f, ok := fault.As(err); ok && f.RetryAfter != s.RetryAfter {
		t.Errorf("Check asks to wait %v, want %v as the registry", f.RetryAfter, s.RetryAfter)
	}
}

func refusesIncomplete(t *testing.T, s Subject) {
	for name, change := range map[string]func(*ownership.Claim){
		"no server name":        func(c *ownership.Claim) { c.ServerName = "" },
		"no identifier":         func(c *ownership.Claim) { c.Identifier = "" },
		"identifier with NUL":   func(c *ownership.Claim) { c.Identifier += "\x00" },
		"version without bound": func(c *ownership.Claim) { c.Version = strings.Repeat("1", ownership.MaxField+1) },
	} {
		claim := s.Owned
		change(&claim)
		if err := s.Checker.Check(t.Context(), claim); err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: Check = %v, want a fault of kind Invalid", name, err)
		}
	}
}

func namesTypes(t *testing.T, s Subject) {
	if err := s.Checker.Check(t.Context(), s.Owned); err != nil {
		t.Fatalf("Check(%+v) = %v, want none", s.Owned, err)
	}
	types := s.Checker.Types()
	if !slices.Contains(types, s.Owned.RegistryType) {
		t.Errorf("Types() = %q, want %q among them", types, s.Owned.RegistryType)
	}
	if !slices.IsSorted(types) || len(slices.Compact(slices.Clone(types))) != len(types) {
		t.Errorf("Types() = %q, want them sorted and without duplicates", types)
	}
	unknown := s.Owned
	unknown.RegistryType = "no-such-type"
	err := s.Checker.Check(t.Context(), unknown)
	if err == nil || fault.KindOf(err) != fault.Unsupported {
		t.Fatalf("unknown type: Check = %v, want a fault of kind Unsupported", err)
	}
	for _, known := range types {
		if !strings.Contains(err.Error(), known) {
			t.Errorf("unknown type: sentence %q does not name %q", err, known)
		}
	}
}

func heedsCancel(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Checker.Check(ctx, s.Owned)
	if !errors.Is(err, context.Canceled) || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Check under a cancelled context = %v, want a fault of kind Unavailable that is context.Canceled", err)
	}
}

func checksInParallel(t *testing.T, s Subject) {
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() {
			if err := s.Checker.Check(t.Context(), s.Owned); err != nil {
				t.Errorf("Check(%+v) = %v, want none", s.Owned, err)
			}
		})
	}
	group.Wait()
}
