package auth

import "time"

// EventType is the kind of an audit event.
type EventType string

// The event types (contract A-47).
const (
	LoginAttempt       EventType = "LOGIN_ATTEMPT"
	RiskEvaluation     EventType = "RISK_EVALUATION"
	DeviceChange       EventType = "DEVICE_CHANGE"
	SuspiciousActivity EventType = "SUSPICIOUS_ACTIVITY"
	StepUpAttempt      EventType = "STEP_UP_ATTEMPT"
	RegistryChange     EventType = "REGISTRY_CHANGE"
	CredentialChange   EventType = "CREDENTIAL_CHANGE"
	AccountChange      EventType = "ACCOUNT_CHANGE"
	MethodsChange      EventType = "METHODS_CHANGE"
	PublisherProof     EventType = "PUBLISHER_PROOF"
	AccessRefused      EventType = "ACCESS_REFUSED"
)

// EventTypes returns all event types.
func EventTypes() []EventType {
	return []EventType{
		LoginAttempt, RiskEvaluation, DeviceChange, SuspiciousActivity, StepUpAttempt,
		RegistryChange, CredentialChange, AccountChange, MethodsChange, PublisherProof, AccessRefused,
	}
}

// Event is one entry of the audit log. It never holds a password, code or token.
type Event struct {
	ID      EventID
	Time    time.Time
	Type    EventType
	UserID  UserID // the person whose log has the event; empty for events that only operators see
	Success bool
	Details map[string]any // values that JSON can write
}
