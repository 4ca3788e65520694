package settings

import (
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/oidc"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// The functions of this file return the settings as the use cases take them. They are functions and
// not methods, so that provider sets can list them.

// SignInConfig returns the configuration of sign-in.
func SignInConfig(a Auth) signin.Config { return a.SignIn() }

// CredentialsConfig returns the configuration of changes of credentials.
func CredentialsConfig(a Auth) credentials.Config { return a.Credentials() }

// StepUpConfig returns the configuration of step-up.
func StepUpConfig(a Auth) stepup.Config { return a.StepUp() }

// RetentionConfig returns the configuration of the removal of old records.
func RetentionConfig(r Retention, a Auth) retention.Config {
	return retention.Config{
		Audit: r.Audit, Sessions: r.Sessions, Lockout: max(a.LockoutWindow, a.LockoutDuration), Interval: r.Interval,
	}
}

// PublishConfig returns the configuration of changes of the registry.
func PublishConfig(r Registry, p Packages, u Publishers) publishing.Config {
	reserved, _ := u.reserved() // Validate accepts no other
	return publishing.Config{WritesOff: !r.WritesOn(), Checks: p.Level(), Reserved: reserved, Review: r.ReviewOn(), PendingMax: r.PendingMax}
}

// MirrorsConfig returns the configuration of mirrors.
func MirrorsConfig(r Registry, u Publishers) mirroring.Config {
	reserved, _ := u.reserved() // Validate accepts no other
	return mirroring.Config{Review: r.ReviewOn(), Reserved: reserved}
}

// PoliciesConfig returns the configuration of policies and proofs of publishers.
func PoliciesConfig(u Publishers, t oidc.Config) delegating.Config {
	reserved, _ := u.reserved() // Validate accepts no other
	return delegating.Config{
		Mode: u.Mode(), UnprovenAfter: u.UnprovenAfter,
		Rules: publisher.Rules{Issuers: t.Issuers, GitHubIssuer: t.GitHubIssuer, Reserved: reserved},
	}
}

// RecheckConfig returns the configuration of the search for keys of domains.
func RecheckConfig(u Publishers) delegating.RecheckConfig {
	return delegating.RecheckConfig{Mode: u.Mode(), Interval: u.Recheck, UnprovenAfter: u.UnprovenAfter}
}

// WriteTrust returns the trust level that every write to the registry requires.
func WriteTrust(r Registry) auth.TrustLevel { return r.Level() }

// DecideConfig returns the configuration of rate limit decisions.
func DecideConfig(r RateLimit) decide.Config { return r.Decide() }

// RuleOptions returns how rate limit rules are compiled.
func RuleOptions(r RateLimit) ruleset.Options {
	return ruleset.Options{MergeDomains: r.MergeDomains, QuotaMode: r.QuotaMode}
}

// StatisticsOptions returns which statistics of rate limits there are.
func StatisticsOptions(r RateLimit) statistics.Options {
	return statistics.Options{WithoutRules: r.DisableStats, PeerNames: r.Alone}
}

// ThrottleConfig returns the limits of the API.
func ThrottleConfig(l Limits, u Publishers, r RateLimit) inprocess.ThrottleConfig {
	return inprocess.ThrottleConfig{
		Prefix: r.Prefix,
		Limits: map[throttle.Scope]inprocess.Limit{
			throttle.AuthAddress:     {Requests: l.Auth, Window: l.Window},
			throttle.APIAddress:      {Requests: l.API, Window: l.Window},
			throttle.RegistryAddress: {Requests: l.Registry, Window: l.Window},
			throttle.LargeBodies:     {Requests: l.largeBodies(), Window: l.Window},
			throttle.StepUpUser:      {Requests: l.StepUp, Window: l.StepUpWindow},
			throttle.NoticeUser:      {Requests: l.Notices, Window: time.Hour},
			throttle.RefusalUser:     {Requests: audit.MaxRefusals, Window: audit.RefusalWindow},

			throttle.PublisherAddress: {Requests: u.ProofLimit, Window: proofWindow},
			throttle.PublisherDomain:  {Requests: u.DomainLimit, Window: proofWindow},
		},
	}
}
