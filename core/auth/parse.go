package auth

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// ParseStepUpMethod returns the method of a name as the API writes it. Anything else is
// fault.Invalid with code validation_error.
func ParseStepUpMethod(name string) (StepUpMethod, error) {
	m := StepUpMethod(name)
	if !slices.Contains([]StepUpMethod{EmailOTP, SMSOTP, AuthenticatorApp, PasskeyMethod, CompanySignIn}, m) {
		return "", InvalidField(CodeValidation, "method",
			"must be EMAIL_OTP, SMS_OTP, AUTHENTICATOR_APP, PASSKEY or COMPANY")
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

// ParseCategory returns the category of audit events of a name as the API writes it. Anything else
// is fault.Invalid with code validation_error.
func ParseCategory(name string) (audit.Category, error) {
	c := audit.Category(name)
	if !slices.Contains(audit.Categories(), c) {
		return "", InvalidField(CodeValidation, "eventType", "is not a known event type")
	}
	return c, nil
}

// ParseDeviceName returns the name that a person gives a device, without spaces around it: at most
// MaxDeviceName printable characters, or no character. Anything else is fault.Invalid with code
// validation_error.
func ParseDeviceName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case utf8.RuneCountInString(name) > MaxDeviceName:
		return "", InvalidField(CodeValidation, "name", "must have at most "+strconv.Itoa(MaxDeviceName)+" characters")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", InvalidField(CodeValidation, "name", "must have printable characters only")
	}
	return name, nil
}
