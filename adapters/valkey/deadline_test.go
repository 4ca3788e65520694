package valkey

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines checks that a call ends within the timeout and not much earlier, whenever it began, and
// that a caller with an earlier deadline keeps its context.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 160 * time.Millisecond
		d := deadlines{timeout: timeout}
		for range 300 {
			began := time.Now()
			ctx := d.bound(t.Context())
			at, ok := ctx.Deadline()
			if left := at.Sub(began); !ok || left > timeout || left < timeout-timeout/deadlineAges || ctx.Err() != nil {
				t.Fatalf("%v are left of %v, %v", left, timeout, ctx.Err())
			}
			time.Sleep(time.Millisecond)
		}
		ctx := d.bound(t.Context())
		<-ctx.Done()
		if at, _ := ctx.Deadline(); !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Now().Before(at) {
			t.Errorf("the context ended %v early with %v", time.Until(at), ctx.Err())
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if d.bound(soon) != soon {
			t.Error("a caller with an earlier deadline gets another context")
		}
		time.Sleep(timeout) // the timers end
	})
}

// BenchmarkDeadlines bounds a call.
func BenchmarkDeadlines(b *testing.B) {
	d := deadlines{timeout: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		_ = d.bound(ctx)
	}
}
