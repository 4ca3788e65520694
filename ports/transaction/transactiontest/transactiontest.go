// Package transactiontest has the contract tests of ports/transaction. Every adapter of the port
// runs them.
package transactiontest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Opened is an empty database: the runner of its transactions, and a store in which the tests see
// their effect.
type Opened struct {
	Runner transaction.Runner
	Grants registrystore.Grants
}

var errRefused = errors.New("refused")

// Run runs the suite. It calls open for each test.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	t.Helper()
	parts := map[string]func(t *testing.T, o Opened){
		"a transaction that succeeds stores all its changes":      storesWhatSucceeded,
		"a transaction that returns an error stores nothing":      storesNothingAfterAnError,
		"a transaction that panics stores nothing":                storesNothingAfterAPanic,
		"a transaction reads its own changes":                     readsItsOwnChanges,
		"a transaction within another one joins it":               joinsTransaction,
		"an error of a joined transaction fails the outer one":    failedJoin,
		"a transaction with a cancelled context does not begin":   refusesAnEndedContext,
		"a transaction whose context is cancelled stores nothing": rollsBackAtContextEnd,
		"parallel transactions are all stored":                    runsInParallel,
		"an exclusive transaction reads what those before it did": runsInTurn,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

func storesWhatSucceeded(t *testing.T, o Opened) {
	t.Helper()
	err := o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(o.Grants.Add(ctx, grant("a")), o.Grants.Add(ctx, grant("b")))
	})
	if err != nil {
		t.Fatal(err)
	}
	wantHolders(t, o, "a", "b")
}

func storesNothingAfterAnError(t *testing.T, o Opened) {
	t.Helper()
	err := o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if err := o.Grants.Add(ctx, grant("a")); err != nil {
			return err
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Fatalf("got the error %v, want that of the function", err)
	}
	wantHolders(t, o)
}

func storesNothingAfterAPanic(t *testing.T, o Opened) {
	t.Helper()
	func() {
		defer func() {
			if got := recover(); got != "out" {
				t.Errorf("the panic came out as %v", got)
			}
		}()
		_ = o.Runner.Atomically(t.Context(), func(ctx context.Context) error { // it does not return
			if err := o.Grants.Add(ctx, grant("a")); err != nil {
				t.Error(err)
			}
			panic("out")
		})
	}()
	wantHolders(t, o)
	storesWhatSucceeded(t, o) // and the store still works
}

func readsItsOwnChanges(t *testing.T, o Opened) {
	t.Helper()
	err := o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if err := o.Grants.Add(ctx, grant("a")); err != nil {
			return err
		}
		got, err := o.Grants.Of(ctx, "a")
		if err == nil && len(got) != 1 {
			t.Errorf("a transaction sees %v of its own change", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func joinsTransaction(t *testing.T, o Opened) {
	t.Helper()
	err := o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		inner := o.Runner.Atomically(ctx, func(ctx context.Context) error { return o.Grants.Add(ctx, grant("a")) })
		if inner != nil {
			return inner
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	wantHolders(t, o)
}

func failedJoin(t *testing.T, o Opened) {
	t.Helper()
	err := o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		inner := o.Runner.Atomically(ctx, func(ctx context.Context) error {
			return errors.Join(o.Grants.Add(ctx, grant("a")), errRefused)
		})
		if !errors.Is(inner, errRefused) {
			t.Errorf("the joined call returned %v", inner)
		}
		return o.Grants.Add(ctx, grant("b"))
	})
	if !errors.Is(err, errRefused) {
		t.Fatalf("got the error %v, want that of the joined call", err)
	}
	wantHolders(t, o)
}

func refusesAnEndedContext(t *testing.T, o Opened) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := o.Runner.Atomically(ctx, func(ctx context.Context) error { return o.Grants.Add(ctx, grant("a")) })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got the error %v, want the context's", err)
	}
	wantHolders(t, o)
}

func rollsBackAtContextEnd(t *testing.T, o Opened) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := o.Runner.Atomically(ctx, func(ctx context.Context) error {
		err := o.Grants.Add(ctx, grant("a"))
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got the error %v, want the context's", err)
	}
	wantHolders(t, o)
}

// runsInParallel runs many transactions of two changes at once.
func runsInParallel(t *testing.T, o Opened) {
	t.Helper()
	const writers, rounds = 8, 5
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for r := range rounds {
				err := o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
					return errors.Join(o.Grants.Add(ctx, grant(fmt.Sprintf("x%d.%d", w, r))),
						o.Grants.Add(ctx, grant(fmt.Sprintf("y%d.%d", w, r))))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := o.Grants.Records(t.Context(), registrystore.GrantQuery{})
	if err != nil || len(got) != 2*writers*rounds {
		t.Errorf("%d grants are stored, want %d (%v)", len(got), 2*writers*rounds, err)
	}
}

// runsInTurn has each transaction add the grant that follows those it has read.
func runsInTurn(t *testing.T, o Opened) {
	t.Helper()
	const writers = 8
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			err := o.Runner.Atomically(transaction.Exclusive(t.Context()), func(ctx context.Context) error {
				stored, err := o.Grants.Records(ctx, registrystore.GrantQuery{})
				return errors.Join(err, o.Grants.Add(ctx, grant(fmt.Sprintf("%02d", len(stored)))))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantHolders(t, o, "00", "01", "02", "03", "04", "05", "06", "07")
}

func grant(holder string) registry.GrantRecord {
	pattern, err := registry.ParsePattern("*")
	if err != nil {
		pattern = registry.Pattern{} // which the stores refuse
	}
	return registry.GrantRecord{Grant: registry.Grant{
		Holder: registry.Holder(holder), Action: registry.ActionEdit, Pattern: pattern,
	}}
}

// wantHolders checks the holders of the stored grants.
func wantHolders(t *testing.T, o Opened, holders ...registry.Holder) {
	t.Helper()
	got, err := o.Grants.Records(t.Context(), registrystore.GrantQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(holders) {
		t.Fatalf("stored are %v, want those of %v", got, holders)
	}
	for i, g := range got {
		if g.Holder != holders[i] {
			t.Errorf("grant %d is held by %s, want %s", i, g.Holder, holders[i])
		}
	}
}
