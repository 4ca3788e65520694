// Package recordtest is what the contract suites of the record stores of authentication share:
// identifiers, generators and ways to call a store. It tests nothing itself.
package recordtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Epoch returns a time for samples: UTC, with microseconds.
func Epoch() time.Time { return time.Date(2031, time.March, 14, 15, 9, 26, 535_897_000, time.UTC) }

// UUID returns the identifier of a number from 0; greater numbers have greater identifiers.
func UUID[ID ~string](n int) ID {
	return ID(fmt.Sprintf("%08x-1234-4abc-8def-0123456789ab", n))
}

// Text generates text of all characters that a database can store.
func Text() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != 0 && utf8.ValidRune(r) }), 0, 40, -1)
}

// Instant generates times in UTC with microseconds.
func Instant() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.Int64Range(-1e15, 7e15), func(us int64) time.Time { return time.UnixMicro(us).UTC() })
}

// Optional generates zero values besides.
func Optional[V any](g *rapid.Generator[V]) *rapid.Generator[V] {
	var none V
	return rapid.OneOf(rapid.Just(none), g)
}

// Bytes generates byte strings; an empty one is nil.
func Bytes() *rapid.Generator[[]byte] {
	return Optional(rapid.SliceOfN(rapid.Byte(), 1, 64))
}

// Address generates IPv4 and IPv6 addresses, and the zero address.
func Address() *rapid.Generator[netip.Addr] {
	v4 := rapid.Map(rapid.SliceOfN(rapid.Byte(), 4, 4), func(b []byte) netip.Addr {
		return netip.AddrFrom4([4]byte(b))
	})
	v6 := rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) netip.Addr {
		return netip.AddrFrom16([16]byte(b))
	})
	return Optional(rapid.OneOf(v4, v6))
}

// Whole fails the test when a field of the sample, a struct, is not set: a field that was added to
// a record must be added to its sample, and is then stored or the suite fails.
func Whole(t *testing.T, sample any) {
	t.Helper()
	requireNonZero(t, reflect.ValueOf(sample))
}

func requireNonZero(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name
		switch {
		case field.IsZero():
			t.Errorf("the sample has no %s", name)
		case field.Kind() == reflect.Struct && field.Type().NumField() > 0 && field.Type().Field(0).IsExported():
			requireNonZero(t, field)
		}
	}
}

// Cancelled returns a context that has ended.
func Cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// WantCancelled fails the test unless each of the calls, by name, returns the
// error of its cancelled context.
func WantCancelled(t *testing.T, calls map[string]func(ctx context.Context) error) {
	t.Helper()
	for name, call := range calls {
		if err := call(Cancelled(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context returned %v", name, err)
		}
	}
}

// WantNotFound fails the test unless each of the calls, by name, returns fault.NotFound.
func WantNotFound(t *testing.T, calls map[string]func() error) {
	t.Helper()
	for name, call := range calls {
		if err := call(); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of what is not there returned %v", name, err)
		}
	}
}

// Equal fails the test unless got and want are the same in every field.
func Equal[V any](t rapid.TB, got, want V) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n%+v, want\n%+v", got, want)
	}
}

// OK fails the test on an error.
func OK(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns what a call returned and fails the test on its error.
func Must[V any](v V, err error) func(t rapid.TB) V {
	return func(t rapid.TB) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Parallel makes n calls at once and returns their errors, in the order of the calls.
func Parallel(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// WantOne fails the test unless one call succeeded and all others returned a fault of the kind.
func WantOne(t *testing.T, errs []error, others fault.Kind) {
	t.Helper()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !fault.Is(err, others):
			t.Errorf("a call that lost returned %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d calls succeeded, want 1", won)
	}
}

// errRolledBack ends a transaction.
var errRolledBack = errors.New("rolled back")

// RollBack calls do in a transaction that then fails.
func RollBack(t *testing.T, r transaction.Runner, do func(ctx context.Context) error) {
	t.Helper()
	err := r.Atomically(t.Context(), func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		return errRolledBack
	})
	if !errors.Is(err, errRolledBack) {
		t.Fatalf("the transaction returned %v", err)
	}
}
