// Package argon implements the port for password hashing with Argon2id (RFC 9106). It limits how
// many hashes run and wait at the same time. It does not limit the tries of a person.
package argon

import (
	"context"
	"crypto/subtle"
	"runtime"
	"time"

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
