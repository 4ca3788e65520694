package auth

import "time"

// EventType is the kind of an audit event.
type EventType string

// The event types of the authentication document, and two more: RegistryChange,
// which every registry write leaves (decisions 1.5), and CredentialChange, which
// a change of what a person signs in with leaves.
const (
	LoginAttempt       EventType = "LOGIN_ATTEMPT"
	RiskEvaluation     EventType = "RISK_EVALUATION"
	DeviceChange       EventType = "DEVICE_CHANGE"
	SuspiciousActivity EventType = "SUSPICIOUS_ACTIVITY"
	StepUpAttempt      EventType = "STEP_UP_ATTEMPT"
	RegistryChange     EventType = "REGISTRY_CHANGE"
	CredentialChange   EventType = "CREDENTIAL_CHANGE"
)

// Event is one entry of the audit log. It never holds a password, code or
// token.
type Event struct {
	ID      EventID
	Time    time.Time
	Type    EventType
	UserID  UserID // empty where no account is concerned
	Success bool
	Details map[string]any // values that JSON can write
}
