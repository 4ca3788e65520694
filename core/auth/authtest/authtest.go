// Package authtest has configurations for tests of authentication: those of the contract (A-15 to
//
package authtest

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// SignIn returns a configuration of sign-in.
func SignIn() signin.Config {
	return signin.Config{
		AccessTokenTTL: 15 * time.Minute, RefreshTokenTTL: 168 * time.Hour, RefreshTokenMaxAge: 720 * time.Hour,
		MFAPolicy: signin.MFAAlways, MFAPendingTTL: 5 * time.Minute,
		Lockout:       auth.LockoutPolicy{Threshold: 5, Window: 15 * time.Minute, Duration: 15 * time.Minute},
		DeviceBinding: trust.BindingPreferred, Risk: Weights(), Bounds: Bounds(), HistoryBounds: HistoryBounds(),
		History: assessment.HistoryOn,
	}
}

// StepUp returns a configuration of step-up.
func StepUp() stepup.Config {
	return stepup.Config{CodeTTL: 10 * time.Minute, Attempts: 3, Learn: true, AccessTokenTTL: 15 * time.Minute}
}

// Weights returns weights of the risk score.
func Weights() risk.Config {
	return risk.Config{
		DeviceConfirmed: 15, DeviceUnknown: 30,
		OtherCountry: 20, HighRiskCountry: 30, ImpossibleTravel: 40, TravelMaxKMH: 900, TravelMinKM: 100,
		AddressHidden: 10, AddressListed: 40,
		VelocitySessions: 2, VelocityMinute: 30, VelocityFiveMinutes: 15,
		FailedFew: 10, FailedSome: 25, FailedMany: 40, SomeFailures: 3, ManyFailures: 6,
	}
}

// HistoryBounds returns bounds of the trust levels for the score of the history.
func HistoryBounds() trust.Bounds { return trust.Bounds{Full: 52, Limited: 58, Unverified: 68} }

// Bounds returns bounds of the trust levels.
func Bounds() trust.Bounds { return trust.Bounds{Full: 20, Limited: 40, Unverified: 60} }
