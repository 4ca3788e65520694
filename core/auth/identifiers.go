// Package auth is the model of adaptive authentication: accounts, devices,
// sessions, step-up challenges and audit events, with the rules that need
// nothing but their own data. Use cases live in the packages below it.
package auth

import (
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// The identifiers of authentication; each is a UUID in its usual lower-case text form.
type (
	// UserID names an account.
	UserID string
	// DeviceID names a device.
	DeviceID string
	// SessionID names a session.
	SessionID string
	// ChallengeID names a step-up challenge.
	ChallengeID string
)

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// NewUUID returns the version 4 UUID (RFC 9562, 5.4) made of 16 random bytes.
func NewUUID[ID ~string](random [16]byte) ID {
	random[6] = random[6]&0x0f | 0x40
	random[8] = random[8]&0x3f | 0x80
	h := hex.EncodeToString(random[:])
	return ID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// ParseUUID returns the identifier written in s, which may use upper case. Anything that is not a
// UUID is fault.Invalid with code validation_error and names the field.
func ParseUUID[ID ~string](field, s string) (ID, error) {
	if !uuidForm.MatchString(s) {
		return "", InvalidField(CodeValidation, field, "must be a UUID")
	}
	return ID(strings.ToLower(s)), nil
}

// InvalidField returns the failure of one field of a request, which details.fields names
// (contract A-3).
func InvalidField(code fault.Code, field, problem string) *fault.Error {
	return InvalidFields(code, map[string]string{field: problem})
}

// InvalidFields returns the failure of fields of a request; details.fields has each with its
// problem (contract A-3).
func InvalidFields(code fault.Code, problems map[string]string) *fault.Error {
	sentences, fields := make([]string, 0, len(problems)), jsonvalue.Object{}
	for _, field := range slices.Sorted(maps.Keys(problems)) {
		sentences = append(sentences, field+" "+problems[field])
		fields[field] = jsonvalue.Text(problems[field])
	}
	return fault.New(fault.Invalid, strings.Join(sentences, "; ")).WithCode(code).WithDetail("fields", fields)
}

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
