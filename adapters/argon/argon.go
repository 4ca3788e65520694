// Package argon implements the port for password hashing with Argon2id (RFC 9106). It limits how
// many hashes run and wait at the same time. It does not limit the tries of a person.
package argon

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/argon2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Hasher hashes passwords with Argon2id. It is safe for concurrent use.
type Hasher struct {
	present parameters
	entropy secrets.Entropy
	queue   chan struct{} // one element for each hash that runs or waits
	cores   chan struct{} // one element for each hash that runs
	metrics metrics
}

// New returns a Hasher that runs at most one hash per core (contract A-12). If there are several
// cores, it leaves one free, because a hash occupies a core for tens of milliseconds and all other
// requests would wait. The settings must be valid.
func New(c Config, e secrets.Entropy) (*Hasher, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	cores := max(1, runtime.GOMAXPROCS(0)-1)
	return &Hasher{
		present: c.hashParameters(), entropy: e,
		queue: make(chan struct{}, cores+c.Queue), cores: make(chan struct{}, cores), metrics: newMetrics(),
	}, nil
}

// Hash returns a hash with a new salt and the current parameters.
func (h *Hasher) Hash(ctx context.Context, p auth.Password) (auth.PasswordHash, error) {
	if p.TooLong() {
		return "", fault.New(fault.Invalid, "the password is too long").WithCode(auth.CodeValidation)
	}
	e := encoded{parameters: h.present, salt: make([]byte, saltSize)}
	h.entropy.Fill(e.salt)
	err := h.runHash(ctx, func() { e.key = e.deriveKey(p, e.salt, keySize) })
	if err != nil {
		return "", err
	}
	return auth.PasswordHash(e.String()), nil
}

// Verify reports whether the hash belongs to the password, and whether it should be renewed. If it
// does not and costs less than a current hash, Verify spends the difference, because otherwise the
// response time would reveal accounts that are older than the settings.
func (h *Hasher) Verify(ctx context.Context, stored auth.PasswordHash, p auth.Password) (match, stale bool, err error) {
	e, err := decodeHash(stored)
	if err != nil {
		return false, false, fault.Wrap(fault.Internal, "verify a password hash", err)
	}
	err = h.runHash(ctx, func() {
		key := e.deriveKey(boundLength(p), e.salt, uint32(len(e.key))) // decodeHash allows at most 64
		match = subtle.ConstantTimeCompare(key, e.key) == 1
		if !match {
			for _, rest := range e.remainingWork(h.present) {
				_ = rest.deriveKey(boundLength(p), e.salt, keySize) // only to spend the same time
			}
		}
	})
	if err != nil || p.TooLong() {
		return false, false, err
	}
	return match, match && e.isWeakerThan(h.present), nil
}

// VerifyNone spends the time of Verify without an account.
func (h *Hasher) VerifyNone(ctx context.Context, p auth.Password) error {
	return h.runHash(ctx, func() {
		var salt [saltSize]byte
		key := h.present.deriveKey(boundLength(p), salt[:], keySize)
		_ = subtle.ConstantTimeCompare(key, make([]byte, keySize)) // only to spend the same time
	})
}

// runHash runs work when a core is free. If too many hashes wait already, it returns
// fault.Unavailable.
func (h *Hasher) runHash(ctx context.Context, work func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case h.queue <- struct{}{}:
		defer func() { <-h.queue }()
	default:
		h.metrics.refused.Inc()
		return fault.New(fault.Unavailable, "too many sign-ins at the same time; try again in a second").
			After(time.Second)
	}
	came := time.Now()
	select {
	case h.cores <- struct{}{}:
		defer func() { <-h.cores }()
	case <-ctx.Done():
		h.metrics.canceled.Inc()
		return ctx.Err()
	}
	began := time.Now()
	work()
	h.metrics.recordHash(began.Sub(came), time.Since(began))
	return nil
}

func (p parameters) deriveKey(w auth.Password, salt []byte, size uint32) []byte {
	return argon2.IDKey([]byte(w.Reveal()), salt, p.iterations, p.memory, p.parallelism, size)
}

// boundLength replaces a password that is too long by the empty password, so that no request can
// make the service hash a megabyte.
func boundLength(p auth.Password) auth.Password {
	if p.TooLong() {
		return auth.Password{}
	}
	return p
}

// Config contains the settings of password hashing (contract A-12).
type Config struct {
	MemoryKiB   uint32 `env:"ARGON2_MEMORY_KIB" envDefault:"19456" desc:"memory of one password hash in KiB, 8 to 1048576"`
	Iterations  uint32 `env:"ARGON2_ITERATIONS" envDefault:"2" desc:"passes over the memory of one password hash, 1 to 64"`
	Parallelism uint8  `env:"-"` // lanes of one password hash; 0 means 1
	Queue       int    `env:"-"` // how many hashes may wait for a core
}

// Bounds of the parameters, in the settings and in stored hashes.
const (
	maxMemoryKiB   = 1 << 20
	maxIterations  = 64
	maxParallelism = 16
)

// Validate returns an error that names the variable whose value is out of range.
func (c Config) Validate() error { return c.hashParameters().validateCosts() }

func (c Config) hashParameters() parameters {
	return parameters{memory: c.MemoryKiB, iterations: c.Iterations, parallelism: max(c.Parallelism, 1)}
}

// parameters contains the costs of Argon2id.
type parameters struct {
	memory      uint32 // KiB
	iterations  uint32
	parallelism uint8
}

func (p parameters) validateCosts() error {
	switch {
	case p.iterations < 1 || p.iterations > maxIterations:
		return fmt.Errorf("ARGON2_ITERATIONS is %d, it must be from 1 to %d", p.iterations, maxIterations)
	case p.parallelism < 1 || p.parallelism > maxParallelism:
		return fmt.Errorf("the parallelism is %d, it must be from 1 to %d", p.parallelism, maxParallelism)
	case p.memory > maxMemoryKiB:
		return fmt.Errorf("ARGON2_MEMORY_KIB is %d, it must be at most %d", p.memory, maxMemoryKiB)
	case p.memory < 8*uint32(p.parallelism):
		return errors.New("ARGON2_MEMORY_KIB must be at least 8")
	}
	return nil
}

// isWeakerThan reports whether any cost of p is lower than that of q.
func (p parameters) isWeakerThan(q parameters) bool {
	return p.memory < q.memory || p.iterations < q.iterations || p.parallelism < q.parallelism
}

// workFactor returns the cost of a hash: the KiB that its passes fill.
func (p parameters) workFactor() uint64 { return uint64(p.memory) * uint64(p.iterations) }

// remainingWork returns hashes that together cost about the difference between a hash with q and
// one with p, or nothing if p costs as much. Each of them needs no more memory than a hash with q.
func (p parameters) remainingWork(q parameters) []parameters {
	if p.workFactor() >= q.workFactor() {
		return nil
	}
	missing := q.workFactor() - p.workFactor()
	passes, rest := missing/uint64(q.memory), missing%uint64(q.memory)
	var hashes []parameters
	if passes > 0 {
		hashes = append(hashes, parameters{q.memory, uint32(passes), q.parallelism}) // at most q.iterations
	}
	if least := 8 * uint64(q.parallelism); rest >= least { // the minimum memory of a hash
		hashes = append(hashes, parameters{uint32(rest), 1, q.parallelism}) // less than q.memory
	}
	return hashes
}

// metrics contains the metrics of the queue of hashes.
type metrics struct {
	hashes                  *prometheus.CounterVec
	done, refused, canceled prometheus.Counter
	waited, took            prometheus.Histogram
}

func newMetrics() metrics {
	m := metrics{
		hashes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_password_hashes_total",
			Help: "Password hashes, by their outcome.",
		}, []string{"outcome"}),
		waited: newHistogram("tollgate_password_hash_wait_seconds", "How long password hashes waited for a core."),
		took:   newHistogram("tollgate_password_hash_duration_seconds", "How long password hashes took on their core."),
	}
	m.done = m.hashes.WithLabelValues("done")
	m.refused = m.hashes.WithLabelValues("refused")   // the queue was full
	m.canceled = m.hashes.WithLabelValues("canceled") // the caller canceled while it waited
	return m
}

func newHistogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	})
}

func (m *metrics) recordHash(waited, took time.Duration) {
	m.waited.Observe(waited.Seconds())
	m.took.Observe(took.Seconds())
	m.done.Inc()
}

// Measure registers metrics in r: the number of hashes by outcome, how long they waited and ran,
// and how many wait.
func (h *Hasher) Measure(r prometheus.Registerer) {
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tollgate_password_hashes_waiting",
		Help: "Password hashes that wait for a core.",
	}, func() float64 { return float64(h.countWaiting()) })
	r.MustRegister(h.metrics.hashes, h.metrics.waited, h.metrics.took, waiting)
}

// countWaiting returns how many hashes wait. The two lengths are not read at the same time, so the
// difference may be negative for a moment.
func (h *Hasher) countWaiting() int { return max(0, len(h.queue)-len(h.cores)) }

const (
	saltSize = 16 // bytes; RFC 9106, section 3.1
	keySize  = 32

	minSaltSize, maxSaltSize = 8, 64
	minKeySize, maxKeySize   = 16, 64

	maxEncoded = 256 // characters of an encoded hash
)

// encoded is a hash with everything that is needed to verify it. Its text is the PHC string format:
// $argon2id$v=19$m=19456,t=2,p=1$<salt>$<key>, in base64 without padding.
type encoded struct {
	parameters
	salt, key []byte
}

func (e encoded) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, e.memory, e.iterations, e.parallelism, b64.EncodeToString(e.salt), b64.EncodeToString(e.key))
}

func decodeHash(h auth.PasswordHash) (encoded, error) {
	var e encoded
	parts := strings.Split(string(h), "$")
	if len(h) > maxEncoded || len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return encoded{}, errors.New("the stored password hash is not an argon2id hash in the PHC string format")
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return encoded{}, errors.New("the stored password hash has an unknown version")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &e.memory, &e.iterations, &e.parallelism); err != nil {
		return encoded{}, errors.New("the stored password hash has unreadable parameters")
	}
	if e.validateCosts() != nil || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", e.memory, e.iterations, e.parallelism) {
		return encoded{}, errors.New("the stored password hash has parameters out of range")
	}
	var saltErr, keyErr error
	e.salt, saltErr = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	e.key, keyErr = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if saltErr != nil || keyErr != nil ||
		len(e.salt) < minSaltSize || len(e.salt) > maxSaltSize || len(e.key) < minKeySize || len(e.key) > maxKeySize {
		return encoded{}, errors.New("the stored password hash has an unreadable salt or key")
	}
	return e, nil
}
