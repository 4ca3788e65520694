package database

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/wait"
)

const (
	probeGap     = 250 * time.Millisecond // between two probes of a database that is away
	probeTimeout = time.Second            // of one probe
)

// Probe asks the database something on a connection of its own. It returns nil when the database
// answered, whatever the answer was.
type Probe func(ctx context.Context) error

// Breaker keeps callers from waiting for a database that is away. A call that got no answer is only
// a reason to look: one goroutine then probes the database, and opens the breaker if the probe fails
// and no other call was answered meanwhile. So neither a slow statement nor a caller that gives up
// opens it. While it is open the same goroutine goes on probing, and closes it with the first answer.
// It is safe for concurrent use.
type Breaker struct {
	probe   Probe
	reasons chan time.Time // when the calls without an answer began; the goroutine takes one at a time
	started time.Time      // which distrusted counts from, so that no change of the clock matters

	open       atomic.Bool
	probing    atomic.Bool
	answered   atomic.Bool  // a call was answered since the probe began
	distrusted atomic.Int64 // connections that last answered before this may be dead
	outdated   atomic.Int64 // connections made before this may be about to be ended
	dialling   atomic.Pointer[dialling]

	log *logrus.Entry // nil for none
}

// dialling is the time in which new connections may be opened; its end cuts those short that are not
// open yet.
type dialling struct {
	context.Context
	end context.CancelFunc
}

// NewBreaker returns a closed breaker and a function that ends its goroutine.
func NewBreaker(probe Probe) (*Breaker, func()) {
	b := &Breaker{probe: probe, reasons: make(chan time.Time, 1), started: time.Now()}
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

// Dialling returns a context that ends when the breaker opens, and has ended while it is open: a
// connection that is being opened then would only keep others waiting.
func (b *Breaker) Dialling() context.Context { return b.dialling.Load() }

// Trusts reports whether a connection may be used that was made at one time and last answered at
// another: not if a call got no answer since.
func (b *Breaker) Trusts(made, answered time.Time) bool {
	return int64(answered.Sub(b.started)) >= b.distrusted.Load() && int64(made.Sub(b.started)) >= b.outdated.Load()
}

// retireIdleSince keeps the connections that have not answered since a time from being used again.
func (b *Breaker) retireIdleSince(since time.Time) {
	if b != nil {
		advanceTo(&b.distrusted, int64(since.Sub(b.started)))
	}
}

// retireAll keeps all connections that there are now from being used again.
func (b *Breaker) retireAll() {
	if b != nil {
		advanceTo(&b.outdated, int64(time.Since(b.started)))
	}
}

// advanceTo sets a moment to a later one, and leaves it where it is later already.
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

// requestProbe has the database probed, since a call that began at a time got no answer.
func (b *Breaker) requestProbe(began time.Time) {
	if b == nil {
		return
	}
	select {
	case b.reasons <- began:
	default: // it is about to be probed
	}
}

// probeOnRequest probes the database whenever there is a reason to.
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

// checkDatabase probes the database and waits until it is there. It returns when the probe began that was
// answered. A probe that fails early is repeated before the breaker opens: its own connection may
// have been ended.
func (b *Breaker) checkDatabase(life context.Context) time.Time {
	first := time.Now()
	for {
		began := time.Now()
		err := b.probeOnce(life)
		switch {
		case err == nil:
			return began
		case time.Since(first) > probeGap || !wait.For(life, probeGap/5):
			return b.waitUntilBack(life, err)
		}
	}
}

// probeOnce probes the database once. It returns nil if that or any other call was answered.
func (b *Breaker) probeOnce(life context.Context) error {
	b.answered.Store(false)
	b.probing.Store(true)
	defer b.probing.Store(false)
	bounded, cancel := context.WithTimeout(life, probeTimeout)
	defer cancel()
	if err := b.probe(bounded); err != nil && !b.answered.Load() {
		return err
	}
	return nil
}

// waitUntilBack opens the breaker, and closes it once the database answers. It returns when the probe began
// that was answered.
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
	for wait.For(life, probeGap) {
		began := time.Now()
		if b.probeOnce(life) != nil {
			continue
		}
		b.retireIdleSince(began)
		b.allowDialling(life)
		b.open.Store(false)
		if b.log != nil {
			b.log.WithField("away", time.Since(away).Round(time.Millisecond).String()).Info("the database answers again")
		}
		return began
	}
	return time.Time{}
}
