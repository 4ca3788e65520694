package stepup

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// This file makes the STEP_UP_ATTEMPT events, and reads them.

// The actions of a step-up.
const (
	ActionInitiate audit.Action = "initiate"
	ActionResend   audit.Action = "resend"
	ActionVerify   audit.Action = "verify"
	ActionDeliver  audit.Action = "deliver" // of a code that could not be delivered
)

// The reasons of those that did not succeed.
const (
	ReasonWrongCode   = string(auth.CodeInvalidOTP)
	ReasonUsedUp      = "step_up_attempts_exceeded" // the challenge has no attempt left
	ReasonClosed      = "challenge_closed"          // the challenge was passed, void or expired
	ReasonUndelivered = "delivery_failed"
)

// The details that are read.
const (
	detailMethod = "method"
	detailReason = "reason"
)

// newStep returns the event of a step that succeeded.
func newStep(action audit.Action, session *auth.Session, c *auth.Challenge) audit.Change {
	details := audit.Details{detailMethod: audit.Text(c.Method)}
	session.Describe(details)
	details.Set("challengeId", string(c.ID))
	return audit.Change{
		Category: audit.StepUpAttempt, Action: action, Subject: audit.Subject(session.UserID), Details: details,
	}
}

// newPass returns the event of a right code.
func newPass(session *auth.Session, c *auth.Challenge) audit.Change {
	change := newStep(ActionVerify, session, c)
	change.Details["trustLevel"] = audit.Text(auth.FullTrust.String())
	return change
}

// newFailure returns the event of a step that did not succeed.
func newFailure(action audit.Action, session *auth.Session, c *auth.Challenge, reason string) audit.Change {
	change := newStep(action, session, c)
	change.Failed, change.Details[detailReason] = true, audit.Text(reason)
	return change
}

// Attempt is what a STEP_UP_ATTEMPT event says.
type Attempt struct {
	Action audit.Action
	Method auth.StepUpMethod
	Reason string // empty if it succeeded
}

// ReadAttempt returns what a STEP_UP_ATTEMPT event says.
func ReadAttempt(e *audit.Event) Attempt {
	return Attempt{e.Action(), auth.StepUpMethod(e.Details.Text(detailMethod)), e.Details.Text(detailReason)}
}
