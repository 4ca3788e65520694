package database

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

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
