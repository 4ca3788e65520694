package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
)

const timeout = 160 * time.Millisecond

type key struct{}

// TestDeadlines requires that a call has the whole timeout and at most a sixteenth more, whenever
// it begins, and that one which waited for a thirty-second of it has the whole timeout still.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := deadline.NewSource(timeout)
		for range 300 {
			began := time.Now()
			one := s.Call(t.Context(), began)
			for _, ctx := range []context.Context{one, s.Bound(t.Context())} {
				at, ok := ctx.Deadline()
				if left := at.Sub(began); !ok || !deadline.HasWhole(ctx) || left < timeout+timeout/32 ||
					left > timeout+timeout/16 || ctx.Err() != nil {
					t.Fatalf("%v are left of %v, %v", left, timeout, ctx.Err())
				}
			}
			time.Sleep(time.Millisecond)
		}
		ctx := s.Bound(t.Context())
		<-ctx.Done()
		if at, _ := ctx.Deadline(); !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Now().Before(at) {
			t.Errorf("the context ended %v early with %v", time.Until(at), ctx.Err())
		}
		time.Sleep(2 * timeout) // the timers end
	})
}

// TestOneDeadlineForADecision requires that the calls of a decision share its deadline, and that
// work which outlives the caller has its own.
func TestOneDeadlineForADecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := deadline.NewSource(timeout)
		ctx := s.Bound(context.WithValue(t.Context(), key{}, "value"))
		time.Sleep(timeout / 2)
		inner := context.WithValue(s.Bound(ctx), key{}, "inner") // as tracing does
		if s.Call(inner, time.Now()) != inner || !deadline.HasWhole(inner) {
			t.Error("the first calls of a decision do not have its whole time")
		}
		deadline.NextStep(inner)
		if s.Call(ctx, time.Now()) != ctx || deadline.HasWhole(ctx) {
			t.Error("later calls of a decision have another deadline, or the whole time")
		}
		if ctx.Value(key{}) != "value" {
			t.Error("the values of the caller are lost")
		}
		kept := context.WithoutCancel(ctx)
		if again := s.Bound(kept); again == kept || again.Value(key{}) != "value" {
			t.Error("work that outlives its caller has no deadline of its own, or lost its values")
		} else if !deadline.HasWhole(again) {
			t.Error("work that outlives its caller has no whole timeout")
		}
		time.Sleep(2 * timeout) // the timers end
	})
}

// TestCallersDeadline requires that a caller with an earlier deadline, or who gave up, keeps its
// context.
func TestCallersDeadline(t *testing.T) {
	s := deadline.NewSource(time.Hour)
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, ctx := range []context.Context{soon, gone} {
		if s.Call(ctx, time.Now()) != ctx || s.Bound(ctx) != ctx || deadline.HasWhole(ctx) {
			t.Error("a caller with an earlier deadline gets another context, or the whole timeout")
		}
	}
}

// BenchmarkCall bounds a call.
func BenchmarkCall(b *testing.B) {
	s := deadline.NewSource(time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Call(ctx, time.Now())
	}
}
