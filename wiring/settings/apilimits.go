package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Limits holds the limits of the API itself (contract A-52).
type Limits struct {
	Auth         uint64        `env:"AUTH_RATE_LIMIT" envDefault:"100" desc:"requests below /auth, except GET /auth/session, and forms of sign-in and account, per window and address (see CLIENT_IPV6_PREFIX); accepted passwords and codes in forms do not count, up to a fifth of it for an account; 0 = no limit"`
	API          uint64        `env:"API_RATE_LIMIT" envDefault:"1000" desc:"requests for GET /auth/session, devices, sessions and audit log per window and address; 0 = no limit"`
	Registry     uint64        `env:"REGISTRY_RATE_LIMIT" envDefault:"10000" desc:"requests for registry and methods per window and address; of those with a body of more than 64 KiB a sixteenth, at least 1; 0 = no limit"`
	Window       time.Duration `env:"RATE_LIMIT_WINDOW" envDefault:"15m" desc:"the window of AUTH_RATE_LIMIT, API_RATE_LIMIT and REGISTRY_RATE_LIMIT"`
	StepUp       uint64        `env:"STEP_UP_LIMIT" envDefault:"5" desc:"step-up challenges and resends per window and user; 0 = no limit"`
	Notices      uint64        `env:"NOTICE_LIMIT" envDefault:"5" desc:"notices of one kind per person and hour, except of what waits for review; 0 = no limit"`
	StepUpWindow time.Duration `env:"STEP_UP_WINDOW" envDefault:"1h" desc:"the window of STEP_UP_LIMIT"`
}

// Validate returns an error that begins with the name of the first setting that is out of range.
func (l Limits) Validate() error {
	if !isWholeSeconds(l.Window) {
		return fmt.Errorf("RATE_LIMIT_WINDOW: %v is not one or more whole seconds", l.Window)
	}
	if !isWholeSeconds(l.StepUpWindow) {
		return fmt.Errorf("STEP_UP_WINDOW: %v is not one or more whole seconds", l.StepUpWindow)
	}
	return nil
}

// PublisherLimits holds the limits of proofs of publishers.
type PublisherLimits struct {
	Proofs uint64 `env:"PUBLISHER_PROOF_LIMIT" envDefault:"60" desc:"proofs per minute and address; 0 = no limit"`
	Domain uint64 `env:"PUBLISHER_DOMAIN_LIMIT" envDefault:"20" desc:"proofs per minute and domain; 0 = no limit"`
}

// ThrottleConfig returns the limits of the API.
func ThrottleConfig(s Settings) inprocess.ThrottleConfig {
	l := s.Limits
	return inprocess.ThrottleConfig{
		Prefix: s.Decide.Prefix,
		Limits: map[throttle.Scope]inprocess.Limit{
			throttle.AuthAddress:     {Requests: l.Auth, Window: l.Window},
			throttle.SignInAccount:   {Requests: l.signIns(), Window: l.Window},
			throttle.APIAddress:      {Requests: l.API, Window: l.Window},
			throttle.RegistryAddress: {Requests: l.Registry, Window: l.Window},
			throttle.LargeBodies:     {Requests: l.largeBodies(), Window: l.Window},
			throttle.StepUpUser:      {Requests: l.StepUp, Window: l.StepUpWindow},
			throttle.NoticeUser:      {Requests: l.Notices, Window: time.Hour},
			throttle.ResetAddress:    {Requests: 3, Window: time.Hour},
			throttle.RefusalUser:     {Requests: auditing.MaxRefusals, Window: auditing.RefusalWindow},

			throttle.OAuthToken:     {Requests: 60, Window: time.Minute},
			throttle.OAuthAuthorize: {Requests: 120, Window: time.Minute},

			throttle.PublisherAddress: {Requests: s.PublisherLimits.Proofs, Window: time.Minute},
			throttle.PublisherDomain:  {Requests: s.PublisherLimits.Domain, Window: time.Minute},
		},
	}
}

// signIns returns how many accepted forms of an account do not count against an address: enough for
// some sign-ins with a code.
func (l Limits) signIns() uint64 {
	if l.Auth == 0 {
		return 0
	}
	return max(1, l.Auth/5)
}

// requestsPerLargeBody is how many requests of the usual size cost the service as much as one with
// a large body.
const requestsPerLargeBody = 16

// largeBodies returns the limit of requests with large bodies.
func (l Limits) largeBodies() uint64 {
	if l.Registry == 0 {
		return 0
	}
	return max(1, l.Registry/requestsPerLargeBody)
}

// isWholeSeconds reports whether d is one or more whole seconds.
func isWholeSeconds(d time.Duration) bool { return d >= time.Second && d%time.Second == 0 }
