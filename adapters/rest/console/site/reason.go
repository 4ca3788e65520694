package site

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// factors are the parts of a risk score in words.
var factors = map[risk.Factor]string{
	risk.DeviceFamiliarity: "Device", risk.GeographicAnomaly: "Place", risk.IPReputation: "Network",
	risk.LoginVelocity: "Number of sign-ins", risk.FailedAttempts: "Failed sign-ins",
}

// newDevice is the reason for the points of a device on which no code was entered.
const newDevice = "no step-up or MFA was passed on the device"

// deviceReasons are the reasons for the points of a device, in words for its owner. They say no
// more than the list of devices does.
var deviceReasons = map[string]string{
	newDevice: "New device: no code was entered on it yet.",
	"the device is trusted, but does not show its token": "The device is trusted, but does not have its cookie any more.",
	"the device is confirmed, but not marked as trusted": "You have not ticked “Trust this browser” on this device.",
}

// factorReasons are the reasons in the words for a session below FULL_TRUST: they name the factor,
// and nothing of what is usual for the person (contract A-63).
var factorReasons = map[risk.Factor]string{
	risk.GeographicAnomaly: "New country or place, or one that is not known.",
	risk.IPReputation:      "Network: hidden, not known or in a list.",
	risk.LoginVelocity:     "Number of sign-ins: many within minutes.",
	risk.FailedAttempts:    "Failed sign-ins: some within the last minutes.",
}

// secondFactors are what raises a level, in words.
var secondFactors = map[auth.Factor]string{
	auth.FactorPasskey: "a passkey was used", auth.FactorTOTP: "a code of the authenticator app was entered",
	auth.FactorRecovery: "a recovery code was entered", auth.FactorLink: "a link sent by mail was opened",
	auth.FactorCompany: "the company checked a second factor", auth.FactorBrowser: "it was approved in a browser",
}

// DescribeLevel returns what raised or capped the level of a sign-in, or that its score gave it.
func DescribeLevel(e assessment.Evaluation) string {
	why := "by the score."
	switch device := slices.IndexFunc(e.Reasons, func(r assessment.Reason) bool { return r.Factor == risk.DeviceFamiliarity }); {
	case secondFactors[e.Factor] != "":
		why = secondFactors[e.Factor] + "."
	case device < 0 || e.TrustLevel == auth.FullTrust || e.TrustLevel == auth.HighRisk:
	case (e.TrustLevel == auth.Unverified) == (e.Reasons[device].Text == newDevice): // the device allows no more
		why = "no more without a code, whatever the score: " + e.Reasons[device].Text + "."
	}
	return LevelOf(e.TrustLevel).Name + ": " + why
}

// DescribeReasons returns why a sign-in did not get full trust, in words for a person whose session
// has the level.
func DescribeReasons(reasons []assessment.Reason, level auth.TrustLevel) (texts []string) {
	for _, r := range reasons {
		text, known := deviceReasons[r.Text]
		if !known && !level.Admits(auth.FullTrust) {
			text, known = factorReasons[r.Factor]
		}
		if !known {
			text = describe(factors[r.Factor], r.Text)
		}
		texts = append(texts, text)
	}
	return texts
}

// describe returns a reason after the name of its factor, which is not repeated.
func describe(name, reason string) string {
	if len(reason) > len(name) && strings.EqualFold(reason[:len(name)], name) {
		return name + reason[len(name):] + "."
	}
	return name + ": " + reason + "."
}
