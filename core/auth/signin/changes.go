package signin

import (
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// This file makes the audit events of logins and sessions (contract A-47).

// attemptDetails returns the details that each event of a login attempt has.
func attemptDetails(from Origin, attempt *loginAttempt) audit.Details {
	details := audit.Details{"deviceIdentity": audit.Text(attempt.identity)}
	auth.DescribeAddress(details, from.Address)
	if attempt.secondStep {
		details["step"] = audit.Text("mfa")
	}
	attempt.proof.Describe(details)
	return details
}

// newRefusal returns the LOGIN_ATTEMPT of a refused login.
func newRefusal(from Origin, attempt *loginAttempt, reason fault.Code) audit.Change {
	details := attemptDetails(from, attempt)
	details["reason"] = audit.Text(reason)
	return audit.Change{
		Category: audit.LoginAttempt, Subject: audit.Subject(attempt.userID()), Failed: true, Details: details,
	}
}

// newFirstStep returns the LOGIN_ATTEMPT of a login that waits for its second factor.
func newFirstStep(from Origin, attempt *loginAttempt) audit.Change {
	details := attemptDetails(from, attempt)
	details["mfaRequired"] = audit.Flag(true)
	return audit.Change{Category: audit.LoginAttempt, Subject: audit.Subject(attempt.account.ID), Details: details}
}

// newSessionChanges returns the events of a new session, in their order.
func newSessionChanges(
	session *auth.Session, verdict *assessment.Verdict, device *auth.Device, newDevice bool, attempt *loginAttempt,
) []audit.Change {
	factor := attempt.factor
	details := audit.Details{"trustLevel": audit.Text(session.TrustLevel.String())}
	session.Describe(details)
	session.DescribeAddress(details)
	details.Set("factor", string(factor))
	attempt.proof.Describe(details)
	if factor.IsCode() {
		details["step"] = audit.Text("mfa")
	}
	if attempt.most != 0 {
		details["method"] = audit.Text("browser")
	}
	evaluation := assessment.NewEvaluation(session, verdict)
	evaluation.Details.Set(assessment.DetailFactor, string(factor))
	changes := []audit.Change{
		evaluation,
		{Category: audit.LoginAttempt, Subject: audit.Subject(session.UserID), Details: details},
	}
	if newDevice {
		d := audit.Details{}
		device.Describe(d)
		changes = append(changes, audit.Change{
			Category: audit.DeviceChange, Action: "new", Subject: audit.Subject(session.UserID), Details: d,
		})
	}
	if session.TrustLevel == auth.HighRisk {
		changes = append(changes, assessment.NewHighRisk(session, verdict))
	}
	return changes
}

// newReplay returns the SUSPICIOUS_ACTIVITY of a refresh token that was used again.
func newReplay(from netip.Addr, session *auth.Session, ended int) audit.Change {
	details := audit.Details{"reason": audit.Text("refresh_token_replay"), "sessionsInvalidated": audit.Number(ended)}
	session.Describe(details)
	auth.DescribeAddress(details, from)
	return audit.Change{
		Category: audit.SuspiciousActivity, Subject: audit.Subject(session.UserID), Failed: true, Details: details,
	}
}
