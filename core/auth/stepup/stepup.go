// Package stepup raises the trust level of a session by a one-time code: initiate, verify, resend.
// Couriers deliver the codes.
package stepup

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config holds the settings of step-up (contract A-42).
type Config struct {
	CodeTTL        time.Duration // how long a code is valid
	Attempts       int           // at a challenge
	Learn          bool          // sessions that pass are learnt from
	AccessTokenTTL time.Duration
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	switch {
	case c.CodeTTL < time.Second:
		return fmt.Errorf("CodeTTL: %v is less than a second", c.CodeTTL)
	case c.Attempts < 1:
		return fmt.Errorf("Attempts: %d is less than 1", c.Attempts)
	}
	return nil
}

// Ports are the dependencies of the step-up service. All stores belong to one adapter, so that a
// transaction spans them.
type Ports struct {
	Accounts     authstore.Accounts
	Sessions     authstore.Sessions
	Devices      authstore.Devices
	DeviceTokens authstore.DeviceTokens
	Challenges   authstore.Challenges
	Identities   authstore.Identities
	Providers    authstore.Providers
	Deferrals    authstore.HistoryDeferrals // nil: sessions are not learnt from
	Transaction  transaction.Runner

	Tokens   secrets.TokenSigner
	Couriers Couriers
	Throttle throttle.Throttle
	Cache    sessioncache.Cache
	Trail    *auditing.Trail
	Clock    clock.Clock
	Entropy  secrets.Entropy
	Passkeys *passkeys.Service // nil: the method PASSKEY is not available
	Root     auth.RootSecret   // the keys of this package are derived from it
}

// Couriers deliver codes by channel. A nil one is not configured: its method is refused.
type Couriers struct {
	Email courier.Courier
	SMS   courier.Courier
}

// Service issues and verifies challenges. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports

	codeKey      auth.Key
	secondFactor auth.SecondFactor
}

// New returns a service. It returns an error if a setting is out of range or the root secret is too
// short.
func New(c Config, p Ports) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	codeKey, err := p.Root.Derive("one-time codes")
	if err != nil {
		return nil, err
	}
	secondFactor, err := auth.NewSecondFactor(p.Root)
	if err != nil {
		return nil, err
	}
	c.Learn = c.Learn && p.Deferrals != nil
	return &Service{config: c, ports: p, codeKey: codeKey, secondFactor: secondFactor}, nil
}

// Pending is a challenge as its person sees it.
type Pending struct {
	ID                auth.ChallengeID
	Method            auth.StepUpMethod
	ExpiresAt         time.Time
	AttemptsRemaining int
	Opens             auth.OTP // the code in the address to open; empty unless the method is COMPANY
}

func (s *Service) newPending(c *auth.Challenge) Pending {
	return Pending{
		ID: c.ID, Method: c.Method, ExpiresAt: c.ExpiresAt, AttemptsRemaining: max(s.config.Attempts-c.Attempts, 0),
	}
}

// errLimitReached returns the error for a limit that is used up.
func errLimitReached(message string, limit uint64, wait time.Duration) error {
	return fault.New(fault.Exhausted, message).WithCode(auth.CodeRateLimit).
		WithDetail("limit", jsonvalue.Number(limit)).After(wait)
}

// errNoAttemptLeft returns the error for a challenge without attempts until it expires.
func (s *Service) errNoAttemptLeft(untilEnd time.Duration) error {
	return errLimitReached("no try is left for this challenge", uint64(s.config.Attempts), untilEnd)
}

// codeCount is the number of one-time codes: they have six digits (contract A-42).
const codeCount = 1_000_000

// newCode returns a uniformly random code. It draws again if a number would make the first codes
// more likely.
func (s *Service) newCode() auth.OTP {
	const fair = math.MaxUint32 - math.MaxUint32%codeCount
	for {
		var random [4]byte
		s.ports.Entropy.Fill(random[:])
		if n := binary.BigEndian.Uint32(random[:]); n < fair {
			return auth.OTP(fmt.Sprintf("%06d", n%codeCount))
		}
	}
}

// hashCode returns the keyed hash under which a code of a challenge is stored. A plain hash of six
// digits could be reversed.
func (s *Service) hashCode(id auth.ChallengeID, code auth.OTP) auth.CodeHash {
	sum := s.codeKey.Sum(string(id) + "\x00" + string(code))
	return sum[:]
}

// isCode reports whether code is the code of c, in constant time.
func (s *Service) isCode(c *auth.Challenge, code auth.OTP) bool {
	return len(c.CodeHash) > 0 && hmac.Equal(c.CodeHash, s.hashCode(c.ID, code))
}
