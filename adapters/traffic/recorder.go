package traffic

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// Bounds of the memory of a recording.
const (
	maxQueued      = 8192     // requests that wait to be written
	maxQueuedBytes = 16 << 20 // of their texts
	maxBatch       = 64 << 10 // bytes of lines that are written at once, except for one longer line
)

const (
	// retryAfter is the time after a failed write in which nothing is written.
	retryAfter = time.Second
	// closeTimeout is the longest time that Close waits for the disk.
	closeTimeout = 5 * time.Second
)

// Ports are the dependencies of a Recorder.
type Ports struct {
	// Sum returns a keyed hash of a value; nil unless Config.Hash. It must be safe for concurrent
	// use.
	Sum   func(value string) [32]byte
	Clock clock.Clock
	Log   *logrus.Entry
}

// Recorder makes decisions, and records those requests and answers that are in the sample.
// Recording never delays or fails a decision: what the disk does not take in time is dropped and
// counted. It is safe for concurrent use.
type Recorder struct {
	decide decide.Func
	sample sample
	clock  clock.Clock
	log    *logrus.Entry
	text   func(string) string // returns a value as it is recorded
	counts *Counts

	mutex  sync.Mutex
	last   time.Time // of the last request in the queue
	closed bool
	queue  chan entry // in order of time
	queued atomic.Int64

	written    chan struct{} // closed when the writer has ended
	file       file          // for the writer only, like all below
	batch      []byte        // lines
	lines      int           // in batch
	line       []byte
	retryAt    time.Time
	logged     sync.Once // a failed write
	loggedFull sync.Once
}

// New returns a Recorder, and opens its file. Close ends it. The error begins with the name of a
// setting.
func New(c Config, d decide.Func, counts *Counts, p Ports) (*Recorder, error) {
	return newRecorder(c, d, counts, p, openFile)
}

func newRecorder(
	c Config, d decide.Func, counts *Counts, p Ports, open func(string, time.Time) (opened, error),
) (*Recorder, error) {
	r := &Recorder{
		decide: d, clock: p.Clock, log: p.Log, counts: counts, text: func(s string) string { return s },
		queue: make(chan entry, maxQueued), written: make(chan struct{}),
		file: file{path: c.File, maxSize: c.MaxBytes, open: open},
	}
	r.sample.below, r.sample.all = c.threshold()
	if c.Hash {
		r.text = func(s string) string {
			sum := p.Sum(s)
			return hex.EncodeToString(sum[:8])
		}
	}
	var err error
	if r.last, err = r.file.start(p.Clock.Now()); err != nil {
		return nil, fmt.Errorf("RATELIMIT_RECORD: %w", err)
	}
	go r.writeAll()
	return r, nil
}

// Decide makes a decision and records it. Errors are those of the decision; they are not recorded.
func (r *Recorder) Decide(ctx context.Context, request *ratelimit.Request) (ratelimit.Decision, error) {
	d, err := r.decide(ctx, request)
	if err == nil && r.sample.has(request) {
		r.record(newEntry(request, d.Code))
	}
	return d, err
}

// record puts an entry with the present time into the queue, or drops it if the queue is full. The
// entries in the queue are in order of time: they get it with the queue locked, and a clock that is
// set back stops for the recording.
func (r *Recorder) record(e entry) {
	size := int64(e.size())
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return
	}
	if r.queued.Load()+size > maxQueuedBytes {
		r.dropFull()
		return
	}
	if now := r.clock.Now().Round(0); now.After(r.last) { // by the wall clock, which the recording has
		r.last = now
	}
	e.at = r.last
	select {
	case r.queue <- e:
		r.queued.Add(size)
	default:
		r.dropFull()
	}
}

func (r *Recorder) dropFull() {
	r.counts.add(queueFull, 1)
	// The log may be as slow as the disk, and the caller waits.
	r.loggedFull.Do(func() {
		go r.log.Error(
			"requests come faster than they are recorded; some are not recorded, see tollgate_ratelimit_recorded_total")
	})
}

// Close writes what is in the queue, for closeTimeout at most, and closes the file. Later decisions
// are not recorded.
func (r *Recorder) Close() {
	r.mutex.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mutex.Unlock()
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case <-r.written:
	case <-timeout.C:
		r.log.Error("the disk is too slow: the last recorded requests are lost")
	}
}

// writeAll writes the entries of the queue until it is closed.
func (r *Recorder) writeAll() {
	defer close(r.written)
	defer r.file.close()
	for e := range r.queue {
		r.file.follow(e.at)
		r.add(&e)
		for len(r.queue) > 0 && len(r.batch) < maxBatch {
			if e, ok := <-r.queue; ok {
				r.add(&e)
			}
		}
		r.flush(e.at)
	}
}

// add adds a line to the batch. It writes the batch and begins a new file if the line does not fit.
func (r *Recorder) add(e *entry) {
	r.queued.Add(-int64(e.size()))
	r.line = appendLine(r.line[:0], e, r.text)
	if len(r.line) > maxLine+1 {
		r.counts.add(tooLong, 1)
		r.line = nil
		return
	}
	if !r.file.hasRoom(len(r.batch), len(r.line)) {
		r.flush(e.at)
	}
	if !r.file.hasRoom(len(r.batch), len(r.line)) {
		if err := r.file.rotate(); err != nil {
			r.drop(1, e.at, err)
			return
		}
	}
	r.batch = append(r.batch, r.line...)
	r.lines++
}

// flush writes the batch.
func (r *Recorder) flush(now time.Time) {
	if r.lines == 0 {
		return
	}
	if now.Before(r.retryAt) {
		r.counts.add(writeFailed, r.lines)
	} else if err := r.file.write(r.batch, now); err != nil {
		r.drop(r.lines, now, err)
	} else {
		r.counts.add(recorded, r.lines)
	}
	r.batch, r.lines = r.batch[:0], 0
	if cap(r.batch) > 4*maxBatch {
		r.batch = nil
	}
}

// drop counts lines that cannot be written, and logs the first failure.
func (r *Recorder) drop(lines int, now time.Time, err error) {
	r.counts.add(writeFailed, lines)
	r.retryAt = now.Add(retryAfter)
	r.logged.Do(func() {
		r.log.WithError(err).
			Error("requests cannot be recorded; the recording goes on when the disk takes it, see tollgate_ratelimit_recorded_total")
	})
}

// The outcomes of requests of the sample.
const (
	recorded    = "recorded"
	queueFull   = "queue_full"
	writeFailed = "write_failed"
	tooLong     = "too_long"
)

// Counts are the metrics of recordings.
type Counts struct{ byOutcome map[string]prometheus.Counter }

// NewCounts returns registered metrics.
func NewCounts(r prometheus.Registerer) *Counts {
	all := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tollgate_ratelimit_recorded_total",
		Help: "Requests of the sample of RATELIMIT_RECORD, by what became of their records.",
	}, []string{"outcome"})
	r.MustRegister(all)
	c := &Counts{map[string]prometheus.Counter{}}
	for _, outcome := range []string{recorded, queueFull, writeFailed, tooLong} {
		c.byOutcome[outcome] = all.WithLabelValues(outcome)
	}
	return c
}

func (c *Counts) add(outcome string, n int) { c.byOutcome[outcome].Add(float64(n)) }
