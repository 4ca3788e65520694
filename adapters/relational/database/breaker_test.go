package database

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeServer answers probes unless it is away.
type fakeServer struct {
	away   atomic.Bool
	probes atomic.Int32
}

func (f *fakeServer) probe(ctx context.Context) error {
	f.probes.Add(1)
	if !f.away.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// probeTimeout is how long a probe may take in these tests.
const probeTimeout = 2 * time.Second

// TestBreaker checks that the breaker opens only if the database does not answer a probe, and
// closes after the first answer.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		b, end := NewBreaker(f.probe, probeTimeout*3)
		defer end()
		suspect := func() {
			b.requestProbe(time.Now())
			synctest.Wait()
		}
		suspect()
		if b.Refuses() || f.probes.Load() != 1 {
			t.Fatalf("open although the database answers, or not probed: %d probes", f.probes.Load())
		}
		f.away.Store(true)
		suspect()
		time.Sleep(probeTimeout / 2)
		b.noteAnswer()
		time.Sleep(probeTimeout)
		synctest.Wait()
		if b.Refuses() {
			t.Fatal("open although a call was answered while the probe was not")
		}
		before := time.Now()
		suspect()
		if b.Refuses() {
			t.Fatal("open before the probe has failed")
		}
		time.Sleep(probeTimeout + 1)
		synctest.Wait()
		if !b.Refuses() || b.Dialling().Err() == nil {
			t.Fatal("closed although the database does not answer")
		}
		f.away.Store(false)
		time.Sleep(probeTimeout + probeGap + 1)
		synctest.Wait()
		if b.Refuses() || b.Dialling().Err() != nil {
			t.Fatal("open although the database answers again")
		}
		if b.Trusts(before, before) || !b.Trusts(before, time.Now()) {
			t.Error("connections that did not answer are used again, or those that did are not")
		}
		time.Sleep(time.Nanosecond)
		b.retireAll()
		if b.Trusts(before, time.Now()) || !b.Trusts(time.Now(), time.Now()) {
			t.Error("outdated connections are used again, or new ones are not")
		}
	})
}

// TestBreakerEnds checks that the goroutine ends while the database is away.
func TestBreakerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.away.Store(true)
		b, end := NewBreaker(f.probe, probeTimeout*3)
		b.requestProbe(time.Now())
		time.Sleep(probeTimeout + 1)
		end()
		if b.Dialling().Err() == nil {
			t.Error("connections may be opened after the end")
		}
	})
}

// TestNoBreaker calls the methods of a nil breaker.
func TestNoBreaker(t *testing.T) {
	var b *Breaker
	b.requestProbe(time.Now())
	b.noteAnswer()
	b.retireIdleSince(time.Now())
	if b.Refuses() {
		t.Error("a nil breaker refuses a call")
	}
}

// TestClassifyCall checks that only calls without an answer request a probe.
func TestClassifyCall(t *testing.T) {
	lost, answered := errors.New("lost"), errors.New("answered")
	b := &Breaker{reasons: make(chan time.Time, 1), started: time.Now()}
	d := &DB{dialect: Dialect{Breaker: b, Classify: func(err error) Class {
		switch {
		case errors.Is(err, lost), errors.Is(err, context.DeadlineExceeded):
			return Lost
		case errors.Is(err, answered):
			return Away
		}
		return Unknown
	}}}
	ended, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for name, c := range map[string]struct {
		caller, bounded context.Context
		err             error
		suspect         bool
	}{
		"done":                 {t.Context(), t.Context(), nil, false},
		"an answer":            {t.Context(), t.Context(), answered, false},
		"a lost connection":    {t.Context(), t.Context(), lost, true},
		"out of time":          {t.Context(), ended, context.DeadlineExceeded, true},
		"an answer, late":      {t.Context(), ended, answered, false},
		"a caller that ended":  {ended, ended, context.DeadlineExceeded, false},
		"a caller, connection": {ended, ended, lost, false},
	} {
		t.Run(name, func(t *testing.T) {
			_ = d.classifyCall(c.caller, c.bounded, time.Now(), c.err)
			select {
			case <-b.reasons:
				if !c.suspect {
					t.Error("a probe was requested")
				}
			default:
				if c.suspect {
					t.Error("no probe was requested")
				}
			}
		})
	}
}

// TestBreakerOfASlowNetwork checks that the breaker closes although a new connection takes longer than an answer
// may.
func TestBreakerOfASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := NewBreaker(func(ctx context.Context) error {
			select {
			case <-time.After(2 * probeTimeout):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, probeTimeout*3)
		defer end()
		b.requestProbe(time.Now())
		time.Sleep(2 * probeTimeout)
		synctest.Wait()
		if !b.Refuses() {
			t.Fatal("not open although no probe is answered in time")
		}
		time.Sleep(6 * probeTimeout)
		synctest.Wait()
		if b.Refuses() {
			t.Error("still open")
		}
	})
}
