package auth

import "slices"

// ParseStepUpMethod returns the method of a name as the API writes it. Anything else is
// fault.Invalid with code validation_error.
func ParseStepUpMethod(name string) (StepUpMethod, error) {
	m := StepUpMethod(name)
	if !slices.Contains([]StepUpMethod{EmailOTP, SMSOTP, AuthenticatorApp}, m) {
		return "", InvalidField(CodeValidation, "method", "must be EMAIL_OTP, SMS_OTP or AUTHENTICATOR_APP")
	}
	return m, nil
}

// ParseTrustStatus returns the mark of a name as the API writes it. Anything else is fault.Invalid
// with code validation_error.
func ParseTrustStatus(name string) (TrustStatus, error) {
	s := TrustStatus(name)
	if !slices.Contains([]TrustStatus{DeviceTrusted, DeviceUntrusted, DevicePending}, s) {
		return "", InvalidField(CodeValidation, "trustStatus", "must be TRUSTED, UNTRUSTED or PENDING")
	}
	return s, nil
}

// ParseEventType returns the event type of a name as the API writes it. Anything else is
// fault.Invalid with code validation_error.
func ParseEventType(name string) (EventType, error) {
	t := EventType(name)
	if !slices.Contains(EventTypes(), t) {
		return "", InvalidField(CodeValidation, "eventType", "is not a known event type")
	}
	return t, nil
}
