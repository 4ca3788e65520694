// Package ownershiptest has the contract tests of ports/ownership. Every adapter runs them, and
// through the SDK every plugin. They test what all checkers promise, not how they read a package
// registry.
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

// parallel is the number of concurrent checks.
const parallel = 8

// Subject is a checker under test, with a package registry whose packages are known.
type Subject struct {
	Checker ownership.Checker
	// Owned is a claim that the registry confirms.
	Owned ownership.Claim
	// Refused are claims that the registry does not confirm, by reason: unknown package, unknown
	// version, package without the server's name.
	Refused map[string]ownership.Claim
	// Transient is a claim that the registry cannot decide at the moment, for example because it
	// responds with 503. It is nil if the test cannot cause that.
	Transient *ownership.Claim
	// RetryAfter is the Retry-After of the registry's response to Transient; 0 without one.
	RetryAfter time.Duration
}

// Run runs the suite. open returns a fresh checker and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("a package that names the server is accepted", func(t *testing.T) { acceptsOwned(t, open(t)) })
	t.Run("a package that does not name the server is refused", func(t *testing.T) { refusesUnconfirmed(t, open(t)) })
	t.Run("a package registry that fails is reported as unavailable", func(t *testing.T) {
		reportsTransient(t, open(t))
	})
	t.Run("an incomplete claim is refused", func(t *testing.T) { refusesIncomplete(t, open(t)) })
	t.Run("the types of packages that are checked are listed", func(t *testing.T) { listsTypes(t, open(t)) })
	t.Run("a call with a cancelled context fails", func(t *testing.T) { obeysCancel(t, open(t)) })
	t.Run("packages are checked in parallel", func(t *testing.T) { checksInParallel(t, open(t)) })
}

func acceptsOwned(t *testing.T, s Subject) {
	if err := s.Checker.Check(t.Context(), s.Owned); err != nil {
		t.Errorf("Check(%+v) = %v, want none", s.Owned, err)
	}
}

func refusesUnconfirmed(t *testing.T, s Subject) {
	seen := map[string]string{}
	for reason, claim := range s.Refused {
		err := s.Checker.Check(t.Context(), claim)
		if err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: Check = %v, want a fault of kind Invalid", reason, err)
			continue
		}
		if other, twice := seen[err.Error()]; twice {
			t.Errorf("%s and %s have the same message %q, want different ones", reason, other, err)
		}
		seen[err.Error()] = reason
	}
}

func reportsTransient(t *testing.T, s Subject) {
	if s.Transient == nil {
		t.Skip("this registry has no transient failure")
	}
	err := s.Checker.Check(t.Context(), *s.Transient)
	if err == nil || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Check = %v, want a fault of kind Unavailable", err)
	}
	if f, ok := fault.As(err); ok && f.RetryAfter != s.RetryAfter {
		t.Errorf("RetryAfter = %v, want %v as from the registry", f.RetryAfter, s.RetryAfter)
	}
}

func refusesIncomplete(t *testing.T, s Subject) {
	for name, change := range map[string]func(*ownership.Claim){
		"no server name":      func(c *ownership.Claim) { c.ServerName = "" },
		"no identifier":       func(c *ownership.Claim) { c.Identifier = "" },
		"identifier with NUL": func(c *ownership.Claim) { c.Identifier += "\x00" },
		"version too long":    func(c *ownership.Claim) { c.Version = strings.Repeat("1", ownership.MaxField+1) },
	} {
		claim := s.Owned
		change(&claim)
		if err := s.Checker.Check(t.Context(), claim); err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: Check = %v, want a fault of kind Invalid", name, err)
		}
	}
}

func listsTypes(t *testing.T, s Subject) {
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
			t.Errorf("unknown type: the message %q does not list %q", err, known)
		}
	}
}

func obeysCancel(t *testing.T, s Subject) {
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
