package database

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	probeGap = 250 * time.Millisecond // between two probes of a database that is away
	// One of longEvery probes of a database that is away may take longTimes as long: in a slow network a new
	// connection takes several times as long as an answer, and there may be no other.
	longEvery, longTimes = 4, 4
)

// Probe sends a query to the database on a new connection. It returns nil if the database answered,
// whatever the answer was.
type Probe func(ctx context.Context) error

// Breaker makes calls fail at once while the database is away. After a call that got no answer, one
// goroutine probes the database, and opens the breaker if the probe fails and no other call was
// answered in the meantime. So a slow statement or a caller that gives up does not open it. While
// it is open, the goroutine continues to probe, and closes it after the first answer. It is safe
// for concurrent use.
type Breaker struct {
	probe    Probe
	patience time.Duration  // of one probe
	reasons  chan time.Time // when calls without an answer began; the goroutine handles one at a time
	started  time.Time      // origin of distrusted and outdated, so that a change of the clock has no effect

	open       atomic.Bool
	probing    atomic.Bool
	answered   atomic.Bool  // a call was answered since the probe began
	distrusted atomic.Int64 // connections that last answered before this may be dead
	outdated   atomic.Int64 // connections made before this may be about to be ended
	dialling   atomic.Pointer[dialling]

	log *logrus.Entry // optional
}

// dialling is the time in which new connections may be opened. Its end stops the opening of
// connections.
type dialling struct {
	context.Context
	end context.CancelFunc
}

// NewBreaker returns a closed breaker and a function that ends its goroutine. callTimeout is the time
// limit of a call.
func NewBreaker(probe Probe, callTimeout time.Duration) (*Breaker, func()) {
	b := &Breaker{probe: probe, patience: awayAfter(callTimeout), reasons: make(chan time.Time, 1), started: time.Now()}
	life, end := context.WithCancel(context.Background())
	b.allowDialling(life)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.probeOnRequest(life)
	}()
	return b, func() {
		end()
		<-done
	}
}

func (b *Breaker) allowDialling(life context.Context) {
	d := &dialling{}
	d.Context, d.end = context.WithCancel(life)
	b.dialling.Store(d)
}

// Refuses reports whether a call should fail at once.
func (b *Breaker) Refuses() bool { return b != nil && b.open.Load() }

// Dialling returns a context that ends when the breaker opens: a connection that is being opened
// then would only keep other callers waiting. While the breaker is open, the context has ended.
func (b *Breaker) Dialling() context.Context { return b.dialling.Load() }

// Trusts reports whether a connection that was made and last answered at these times may be used.
// It returns false if a call got no answer since then.
func (b *Breaker) Trusts(made, answered time.Time) bool {
	return int64(answered.Sub(b.started)) >= b.distrusted.Load() && int64(made.Sub(b.started)) >= b.outdated.Load()
}

// retireIdleSince keeps the connections that have not answered since a time from being used again.
func (b *Breaker) retireIdleSince(since time.Time) {
	if b != nil {
		advanceTo(&b.distrusted, int64(since.Sub(b.started)))
	}
}

// retireAll keeps all present connections from being used again.
func (b *Breaker) retireAll() {
	if b != nil {
		advanceTo(&b.outdated, int64(time.Since(b.started)))
	}
}

// advanceTo sets a moment, unless it is already later.
func advanceTo(moment *atomic.Int64, to int64) {
	for before := moment.Load(); to > before && !moment.CompareAndSwap(before, to); {
		before = moment.Load()
	}
}

// noteAnswer notes that a call was answered.
func (b *Breaker) noteAnswer() {
	if b != nil && b.probing.Load() {
		b.answered.Store(true)
	}
}

// requestProbe requests a probe of the database, because a call that began at a time got no answer.
func (b *Breaker) requestProbe(began time.Time) {
	if b == nil {
		return
	}
	select {
	case b.reasons <- began:
	default: // a probe is already requested
	}
}

// probeOnRequest probes the database after each request, until life ends.
func (b *Breaker) probeOnRequest(life context.Context) {
	var alive time.Time // when the last probe that was answered began
	for {
		select {
		case <-life.Done():
			return
		case began := <-b.reasons:
			if began.Before(alive) {
				continue
			}
			alive = b.checkDatabase(life)
			b.retireIdleSince(began)
		}
	}
}

// checkDatabase probes the database and waits until it answers. It returns when the answered probe
// began. It repeats a probe that fails early before it opens the breaker: the server may have ended
// the connection of the probe.
func (b *Breaker) checkDatabase(life context.Context) time.Time {
	first := time.Now()
	for {
		began := time.Now()
		err := b.probeOnce(life, b.patience)
		switch {
		case err == nil:
			return began
		case time.Since(first) > probeGap || !pause.For(life, probeGap/5):
			return b.waitUntilBack(life, err)
		}
	}
}

// probeOnce probes the database once. It returns nil if that or any other call was answered.
func (b *Breaker) probeOnce(life context.Context, patience time.Duration) error {
	b.answered.Store(false)
	b.probing.Store(true)
	defer b.probing.Store(false)
	bounded, cancel := context.WithTimeout(life, patience)
	defer cancel()
	if err := b.probe(bounded); err != nil && !b.answered.Load() {
		return err
	}
	return nil
}

// waitUntilBack opens the breaker, and closes it when the database answers. It returns when the
// answered probe began.
func (b *Breaker) waitUntilBack(life context.Context, err error) time.Time {
	if life.Err() != nil {
		return time.Time{}
	}
	away := time.Now()
	b.open.Store(true)
	b.dialling.Load().end()
	if b.log != nil {
		b.log.WithError(err).Error("the database does not answer; calls fail at once until it does")
	}
	for n := 1; pause.For(life, probeGap); n++ {
		began, patience := time.Now(), b.patience
		if n%longEvery == 0 {
			patience *= longTimes
		}
		if b.probeOnce(life, patience) != nil {
			continue
		}
		b.retireIdleSince(began)
		b.allowDialling(life)
		b.open.Store(false)
		if b.log != nil {
			b.log.WithField("away", time.Since(away).Round(time.Millisecond).String()).
				Info("the database answers again")
		}
		return began
	}
	return time.Time{}
}

const (
	writeProbeGap     = 5 * time.Second        // for which the result of a write probe is valid
	writeProbeTimeout = 500 * time.Millisecond // of a probe, including the wait for its turn
)

// writes is what is known about whether the database can be written.
type writes struct {
	failing atomic.Bool // the last probe, or a transaction after it, failed

	mu     sync.Mutex // held while probing
	probed time.Time
}

// Ready returns nil if the database answers reads and accepts writes, otherwise fault.Unavailable
// or the context's error. It tries a write every few seconds at most. If the database is only busy
// with another writer, the last result stays valid.
func (d *DB) Ready(ctx context.Context) error {
	if err := d.Ping(ctx); err != nil {
		return err
	}
	d.probeWrites(ctx)
	if d.writes.failing.Load() {
		return fault.New(fault.Unavailable, "the database cannot be written")
	}
	return nil
}

// Ping returns nil if the database answers, otherwise fault.Unavailable or the context's error.
func (d *DB) Ping(ctx context.Context) error {
	began := time.Now()
	err := d.boundedCall(ctx, func(ctx context.Context) error {
		var one int
		return d.ScanInto(ctx, d.reader, &one, "SELECT 1")
	})
	if err != nil && !d.dialect.Breaker.Refuses() {
		d.dialect.Breaker.requestProbe(began) // also if the time limit of the caller was too short
	}
	return err
}

// probeWrites tries a write, unless another call tries one or has just tried.
func (d *DB) probeWrites(ctx context.Context) {
	if d.dialect.WriteProbe == nil || !d.writes.mu.TryLock() {
		return
	}
	defer d.writes.mu.Unlock()
	if time.Since(d.writes.probed) < writeProbeGap {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, writeProbeTimeout)
	defer cancel()
	_, err := d.runOnce(bounded, func(ctx context.Context) error {
		_, err := d.ExecStatement(ctx, d.carriedTransaction(ctx).tx, d.dialect.WriteProbe())
		return err
	})
	switch {
	case err == nil:
		d.writes.probed = time.Now()
		if d.writes.failing.Load() && d.dialect.HasRoom != nil && !d.dialect.HasRoom() {
			return // a probe fits into the last page, and what has failed would not
		}
		if d.writes.failing.CompareAndSwap(true, false) && d.log != nil {
			d.log.Info("the database can be written again")
		}
	case d.dialect.Classify(err) == Unwritable:
		d.writes.probed = time.Now()
		d.noteWrite(err)
	}
}

// noteWrite stores that the database cannot be written, if the error of a transaction says so.
func (d *DB) noteWrite(err error) {
	if err == nil || d.dialect.Classify(err) != Unwritable {
		return
	}
	if !d.writes.failing.Swap(true) && d.log != nil {
		d.log.WithError(err).Error("the database cannot be written")
	}
}
