// Package throttle is the port to the API's own limits: it decides whether a caller may try again.
// The rate limit hexagon implements it.
package throttle

import (
	"context"
	"time"
)

// Scope names one of the API's own limits.
type Scope string

// The scopes (contract ).
const (
	AuthAddress     Scope = "auth"     // paths below /auth but GET /auth/session, by address
	APIAddress      Scope = "api"      // GET /auth/session, devices, sessions, audit log and key set, by address
	RegistryAddress Scope = "registry" // registry and methods, by address
	LargeBodies     Scope = "large"    // large bodies, by address
	SignInAccount   Scope = "sign_in"  // accepted sign-ins that count against no address, by account and address
	StepUpUser      Scope = "step_up"  // challenges and resends, by user
	NoticeUser      Scope = "notice"   // notices, by kind and user
	ResetAddress    Scope = "reset"    // links of forgotten passwords, by e-mail address
	RefusalUser     Scope = "refusal"  // audit events of refused access, by user

	Decisions Scope = "decide" // decisions for proxies, whose addresses are those of many clients: no limit; others count as APIAddress

	PublisherAddress Scope = "publisher_address" // proofs of publishers, by address
	PublisherDomain  Scope = "publisher_domain"  // proofs of publishers, by domain

	OAuthToken     Scope = "oauth_token"     // requests of clients for tokens, by client and address (contract T-21)
	OAuthAuthorize Scope = "oauth_authorize" // authorization requests, by address
)

// Verdict is the answer to one try.
type Verdict struct {
	Allowed   bool
	Unlimited bool // the scope has no limit; the fields below are zero
	Local     bool // counted in this process only, while the counter store is away
	Limit     uint64
	Remaining uint64
	ResetAt   time.Time // when the current window ends
}

// RetryAfter returns how long until the window ends, at least one second.
func (v Verdict) RetryAfter(now time.Time) time.Duration {
	return max(v.ResetAt.Sub(now), time.Second)
}

// Throttle counts tries in the counter store, for all instances together. While the store is not
// available, it may count in its own process instead, and then sets Local in its verdicts.
type Throttle interface {
	// Try counts one try of a key in a scope and returns whether it is within the limit. It returns
	// fault.Unavailable when the counter store is not available; the verdict then allows nothing,
	// but still has the limit, with no use counted, and the end of its window.
	Try(ctx context.Context, scope Scope, key string) (Verdict, error)
	// GiveBack subtracts one try that must not count, in the window of its verdict.
	GiveBack(ctx context.Context, scope Scope, key string, v Verdict) error
}
