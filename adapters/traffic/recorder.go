package traffic

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/auth"
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

// Config contains the settings of a recording.
type Config struct {
	File     string  `env:"RATELIMIT_RECORD" desc:"file to which sampled requests are recorded, for 'tollgate ratelimit simulate'; of one instance only; not set = none"`
	Sample   float64 `env:"RATELIMIT_RECORD_SAMPLE" envDefault:"0.01" desc:"part of the keys whose requests are recorded, more than 0 and at most 1; a key is a domain and a first descriptor"`
	MaxBytes int64   `env:"RATELIMIT_RECORD_MAX_BYTES" envDefault:"104857600" desc:"size at which the recording is renamed to FILE.1, in place of an earlier one, and a new file begins"`
	Hash     bool    `env:"RATELIMIT_RECORD_HASH" envDefault:"false" desc:"record a keyed hash of each value, the same after a restart; 'tollgate ratelimit' then needs SECRET_KEY"`
}

// On reports whether requests are recorded.
func (c Config) On() bool { return c.File != "" }

// Validate returns an error that begins with the name of the first setting that is out of range.
func (c Config) Validate() error {
	if !(c.Sample > 0 && c.Sample <= 1) {
		return fmt.Errorf("RATELIMIT_RECORD_SAMPLE: %v is not more than 0 and at most 1", c.Sample)
	}
	if c.MaxBytes < 1 {
		return fmt.Errorf("RATELIMIT_RECORD_MAX_BYTES: %d is not at least 1", c.MaxBytes)
	}
	return nil
}

// threshold returns the hash below which a key is in the sample, and whether all keys are.
func (c Config) threshold() (below uint64, all bool) {
	if c.Sample >= 1 {
		return 0, true
	}
	return uint64(c.Sample * math.MaxUint64), false
}

// Sources are the dependencies of a recording.
type Sources struct {
	Root    auth.RootSecret // of the hashes of values
	Clock   clock.Clock
	Metrics prometheus.Registerer
	Log     *logrus.Entry
}

// Open returns what decides rate limit calls: the function itself, or a Recorder around it if
// RATELIMIT_RECORD is set. The cleanup ends the recording.
func Open(c Config, decides decide.Func, s Sources) (decide.Func, func(), error) {
	counts := NewCounts(s.Metrics)
	if !c.On() {
		return decides, func() {}, nil
	}
	ports := Ports{Clock: s.Clock, Log: s.Log}
	if c.Hash {
		key, err := s.Root.Derive("recorded rate limit requests")
		if err != nil {
			return nil, nil, errors.New(
				"RATELIMIT_RECORD_HASH: set SECRET_KEY to at least 32 characters: without the database there is no other secret")
		}
		ports.Sum = key.Sum
	}
	r, err := New(c, decides, counts, ports)
	if err != nil {
		return nil, nil, err
	}
	return r.Decide, r.Close, nil
}

// sample says which requests are recorded.
type sample struct {
	below uint64 // the hashes in the sample
	all   bool
}

// has reports whether a request is in the sample. It depends on the domain and the first descriptor
// only, and is the same on all instances and after a restart, so that either all requests of a key
// are recorded or not (contract L-61).
func (s sample) has(r *ratelimit.Request) bool {
	return s.all || len(r.Descriptors) > 0 && hashKey(r) < s.below
}

// hashKey returns a hash of the domain and the first descriptor of a request: FNV-1a, whose bits
// are mixed at the end by the finalizer of MurmurHash3, because the upper bits of the hashes of
// short texts are alike.
func hashKey(r *ratelimit.Request) uint64 {
	h := hashText(14695981039346656037, string(r.Domain))
	for i := range r.Descriptors[0].Entries {
		e := &r.Descriptors[0].Entries[i]
		h = hashText(hashText(h, e.Key), e.Value)
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// hashText adds a text and its end to a hash. UTF-8 has no byte 0xff.
func hashText(h uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return (h ^ 0xff) * prime
}
