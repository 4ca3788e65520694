// Package signin begins, renews and ends sessions: login with password, second factor, lockout and
// risk, refresh with detection of replays, and sign-out. It does not raise the trust level of a
// session; package stepup does.
package signin

import (
	"fmt"
	"time"

	"github.com/mileusna/useragent"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/locking"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/signals"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config holds the settings of sign-in (contract ). All durations are a second or more,
// except RefreshReuseGrace, which may be zero.
type Config struct {
	AccessTokenTTL     time.Duration // how long an access token is valid
	RefreshTokenTTL    time.Duration // how long a session lives after its last refresh
	RefreshTokenMaxAge time.Duration // how long a session lives at most
	RefreshReuseGrace  time.Duration // how long a repeated refresh gets the same successor
	MFAPolicy          MFAPolicy     // when a person with an authenticator must enter a code
	MFAPendingTTL      time.Duration // how long a login waits for its second factor
	Lockout            auth.LockoutPolicy
	DeviceBinding      trust.Binding
	Risk               risk.Config
	Bounds             trust.Bounds           // of the points
	HistoryBounds      trust.Bounds           // of the score of the history
	PasswordsOff       bool                   // no password is accepted
	History            assessment.HistoryMode // it needs Ports.Counts and Ports.Deferrals unless it is off
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"AccessTokenTTL", c.AccessTokenTTL}, {"RefreshTokenTTL", c.RefreshTokenTTL},
		{"RefreshTokenMaxAge", c.RefreshTokenMaxAge}, {"MFAPendingTTL", c.MFAPendingTTL},
	} {
		if d.value < time.Second {
			return fmt.Errorf("%s: %v is less than a second", d.name, d.value)
		}
	}
	if c.RefreshReuseGrace < 0 {
		return fmt.Errorf("RefreshReuseGrace: %v is negative", c.RefreshReuseGrace)
	}
	if c.MFAPolicy != MFAAlways && c.MFAPolicy != MFARisk {
		return fmt.Errorf("MFAPolicy: %q is neither always nor risk", c.MFAPolicy)
	}
	for _, part := range []struct {
		prefix   string
		validate func() error
	}{
		{"Lockout.", c.Lockout.Validate}, {"DeviceBinding: ", c.DeviceBinding.Validate}, {"Risk.", c.Risk.Validate},
		{"Bounds.", c.Bounds.Validate}, {"HistoryBounds.", c.HistoryBounds.Validate},
		{"History: ", c.History.Validate},
	} {
		if err := part.validate(); err != nil {
			return fmt.Errorf("%s%w", part.prefix, err)
		}
	}
	return nil
}

// Assess returns the settings for assessing sign-ins.
func (c Config) Assess() assessment.Config {
	return assessment.Config{
		Score:  func(s risk.Signals) risk.Assessment { return risk.Assess(c.Risk, s) },
		Bounds: c.Bounds, HistoryBounds: c.HistoryBounds, Binding: c.DeviceBinding, History: c.History,
	}
}

// Ports are the dependencies of sign-in. All stores belong to one adapter, so that a transaction
// spans them.
type Ports struct {
	Accounts      authstore.Accounts
	Devices       authstore.Devices
	DeviceTokens  authstore.DeviceTokens
	Sessions      authstore.Sessions
	RefreshTokens authstore.RefreshTokens
	History       authstore.SessionHistory // used only if Geography is configured
	Lockouts      authstore.Lockouts
	Pending       authstore.PendingLogins
	Counts        authstore.HistoryCounts
	Deferrals     authstore.HistoryDeferrals
	Logins        authstore.Logins
	Providers     authstore.Providers
	Identities    authstore.Identities
	Grants        authority.Granter
	Transaction   transaction.Runner

	Passwords secrets.PasswordHasher
	Tokens    secrets.TokenSigner
	Root      auth.RootSecret
	Passkeys  *passkeys.Service

	Geography  signals.Geography
	Reputation signals.Reputation
	Cache      sessioncache.Cache
	Trail      *auditing.Trail
	Refusals   *auditing.Refusals // nil: sign-outs of other people's sessions are not recorded
	Notices    *notices.Notifier
	Clock      clock.Clock
	Entropy    secrets.Entropy
}

// Service begins, renews and ends sessions. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports

	assessor     *assessment.Assessor
	queues       *loginQueues
	guard        *locking.Guard
	secondFactor auth.SecondFactor
	lockoutKey   auth.Key
	successorKey auth.Key
	identityKey  auth.Key
}

// New returns a service. It returns an error if a setting is out of range or the root secret is too
// short.
func New(c Config, p Ports) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	lockoutKey, err := p.Root.Derive(auth.LockoutPurpose)
	if err != nil {
		return nil, err
	}
	successorKey, err := p.Root.Derive("refresh successors")
	if err != nil {
		return nil, err
	}
	identityKey, err := p.Root.Derive("device identities")
	if err != nil {
		return nil, err
	}
	secondFactor, err := auth.NewSecondFactor(p.Root)
	if err != nil {
		return nil, err
	}
	return &Service{
		config: c, ports: p,
		assessor: newAssessor(c, p), queues: newLoginQueues(), guard: locking.New(c.Lockout, p.Lockouts, p.Clock),
		secondFactor: secondFactor, lockoutKey: lockoutKey, successorKey: successorKey, identityKey: identityKey,
	}, nil
}

func newAssessor(c Config, p Ports) *assessment.Assessor {
	return assessment.New(c.Assess(), assessment.Ports{
		History:   recordedHistory{p.Trail, p.Sessions, p.History, p.Geography},
		Geography: p.Geography, Reputation: p.Reputation, Counts: p.Counts,
	})
}

// Result is a new pair of tokens of a session. If MFARequired is set, it has the user ID only.
type Result struct {
	UserID       auth.UserID
	SessionID    auth.SessionID
	TrustLevel   auth.TrustLevel
	AccessToken  auth.AccessToken
	RefreshToken auth.RefreshSecret
	ExpiresIn    time.Duration     // until the access token expires
	MFARequired  bool              // no session has begun: a code is required
	DeviceToken  auth.DeviceSecret // of VerifyMFA only: the new token of the device
}

// errLockedByOperator returns the error for an account that an operator has locked. Its
// lockoutUntil is the greatest date that the format can hold, because only an operator can end the
// lock.
func errLockedByOperator() error {
	return locking.Refusal(time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC))
}

func errCredentials() error {
	return fault.New(fault.Unauthenticated, "e-mail address or password is wrong").WithCode(auth.CodeInvalidCredentials)
}

// clientInfo is the kind of device, the browser and the operating system that a user agent names.
// It helps the owner to recognise the device.
type clientInfo struct{ device, browser, os string }

// parseUserAgent returns what a user agent names. A part that it does not name is "unknown".
func parseUserAgent(userAgent string) clientInfo {
	parsed := useragent.Parse(userAgent)
	c := clientInfo{device: "unknown", browser: parsed.Name, os: parsed.OS}
	switch {
	case parsed.Bot:
		c.device = "bot"
	case parsed.Tablet:
		c.device = "tablet"
	case parsed.Mobile:
		c.device = "mobile"
	case parsed.Desktop:
		c.device = "desktop"
	}
	if c.browser == "" {
		c.browser = "unknown"
	}
	if c.os == "" {
		c.os = "unknown"
	}
	return c
}

// SystemOf returns the operating system that a device names, or "unknown".
func SystemOf(d auth.DeviceInfo) string { return parseUserAgent(d.UserAgent()).os }
