package site

import "github.com/tollgate-dev/tollgate/core/auth/signin"

// factors are the parts of a risk score in words.
var factors = map[string]string{
	"deviceFamiliarity": "Device", "geographicAnomaly": "Place", "ipReputation": "Network", "loginVelocity": "Number of sign-ins",
	"failedAttempts": "Failed sign-ins",
}

// deviceReasons are the reasons for the points of a device, in words for its owner.
var deviceReasons = map[string]string{
	"no step-up or MFA was passed on the device":         "New device: no code was entered on it yet.",
	"the device is trusted, but does not show its token": "The device is trusted, but does not have its cookie any more.",
	"the device is confirmed, but not marked as trusted": "The device is verified, but not marked as trusted.",
}

// FactorName returns the name of a part of a risk score.
func FactorName(factor string) string { return factors[factor] }

// DescribeReasons returns why a sign-in did not get full trust, in words for the person.
func DescribeReasons(reasons []signin.Reason) (texts []string) {
	for _, r := range reasons {
		if text, known := deviceReasons[r.Text]; known {
			texts = append(texts, text)
			continue
		}
		texts = append(texts, factors[r.Factor]+": "+r.Text+".")
	}
	return texts
}
