package countertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/test/await"
)

// This file is for stores that count on a server, which other tests and runs use too, and which may
// come and go.

// Recovers tests a store whose server starts and stops, twice over: it counts whenever the server
// is there, and reports fault.Unavailable whenever it is not. The server has not been started yet.
func Recovers(t *testing.T, store counter.Store, start, stop func()) {
	t.Helper()
	count := func() error { _, err := counter.Add(t.Context(), store, hit("recovers", 1, noLimit)); return err }
	Away(t, store)
	for range 2 {
		start()
		await.Until(t, "counting once the server is there", func() bool { return count() == nil })
		if err := store.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
		stop()
		await.Until(t, "fault.Unavailable once the server is away", func() bool {
			return fault.Is(count(), fault.Unavailable)
		})
	}
}

// Lossy is a store whose connection is cut while it is in use.
type Lossy struct {
	Store counter.Store
	Safe  counter.Store // the same store over a connection that is not cut
	Key   func(name string) string
	// Cut closes the connection of Store when the server has executed the next command with the
	// key, and before the response arrives.
	Cut func(key string)
}

// LosesResponses checks that a subtraction is not repeated if the connection breaks after the store
// has executed it, because then more requests than the limit would be allowed.
func LosesResponses(t *testing.T, s Lossy) {
	t.Helper()
	for name, m := range map[string]counter.Mode{"each": counter.Each, "all-or-none": counter.AllOrNone} {
		t.Run(name, func(t *testing.T) {
			used, other := hit(s.Key(name), 10, 10), hit(s.Key(name+"-other"), 1, 9)
			results := make([]counter.Result, 2)
			await.Until(t, "counted hits", func() bool {
				return s.Safe.Count(t.Context(), []counter.Hit{used, other}, results, counter.Each) == nil
			})
			await.Until(t, "a connection", func() bool { return s.Store.Ping(t.Context()) == nil })
			used.Addend = -3
			for n, batch := range [][]counter.Hit{{used}, {other, used}} {
				s.Cut(used.Key)
				if err := s.Store.Count(t.Context(), batch, results[:len(batch)], m); !fault.Is(err,
					fault.Unavailable) {
					t.Errorf("the error after a lost response is %v", err)
				}
				left, err := counter.Add(t.Context(), s.Safe, with(used, 0))
				if err != nil {
					t.Fatal(err)
				}
				if least := uint64(10 - 3*(n+1)); left < least {
					t.Errorf("%d hits are left after 3 were subtracted from 10 %d times", left, n+1)
				}
				await.Until(t, "a connection", func() bool { return s.Store.Ping(t.Context()) == nil })
			}
		})
	}
}

// Freezing is a client of a server that can stop to answer without ending its connections.
type Freezing struct {
	Store     counter.Store
	Connected func() bool // reports whether the store has a connection that answers
	Freeze    func()
	Thaw      func()
}

// StopsAnswering tests that calls fail while the server does not answer, and count afterwards.
func StopsAnswering(t *testing.T, s Freezing) {
	t.Helper()
	s.awaitCount(t)
	s.Freeze()
	for range 30 {
		if err := s.count(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("while it does not answer: %v, want fault.Unavailable", err)
		}
	}
	if s.Connected() {
		t.Error("Connected is true after 30 calls without an answer")
	}
	if err := s.Store.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Ping: %v, want fault.Unavailable", err)
	}
	s.Thaw()
	s.awaitCount(t)
	await.Until(t, "a connection", s.Connected)
}

// Overflows tests that all of so many parallel calls fail while the server does not answer. They
// must be more than the client has room for.
func Overflows(t *testing.T, s Freezing, calls int) {
	t.Helper()
	s.awaitCount(t)
	s.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), await.Timeout)
	defer cancel()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if err := s.count(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want fault.Unavailable", err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Errorf("calls without an answer took longer than %v", await.Timeout)
	}
	if s.Connected() {
		t.Error("Connected is true after calls without an answer")
	}
	s.Thaw()
	s.awaitCount(t)
}

func (s Freezing) count(ctx context.Context) error {
	return s.Store.Count(ctx, []counter.Hit{hit("k", 1, noLimit)}, make([]counter.Result, 1), counter.Each)
}

func (s Freezing) awaitCount(t *testing.T) {
	t.Helper()
	await.Until(t, "a counted hit", func() bool { return s.count(t.Context()) == nil })
}

// BenchmarkAdd measures one hit of a fixed window a call, by many callers, over a few hundred
// counters. key is that of a Subject.
func BenchmarkAdd(b *testing.B, store counter.Store, key func(name string) string) {
	b.Helper()
	names := make([]string, 512)
	for i := range names {
		names[i] = key(fmt.Sprint(i))
	}
	var worker atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		hits, results := []counter.Hit{hit("", 1, noLimit)}, make([]counter.Result, 1)
		for i := int(worker.Add(1)) * 31; pb.Next(); i++ {
			hits[0].Key = names[i%len(names)]
			if err := store.Count(b.Context(), hits, results, counter.Each); err != nil {
				b.Error(err)
			}
		}
	})
}
