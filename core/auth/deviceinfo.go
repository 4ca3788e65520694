package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxDeviceField is the greatest length of a field of deviceInfo in characters (contract A-35).
const maxDeviceField = 512

// CommandLine is the product that a user agent of the publishing commands begins with.
const CommandLine = "tollgate-cli"

// DeviceFields are the fields of deviceInfo as they were sent; each is optional.
type DeviceFields struct {
	UserAgent        string
	ScreenResolution string
	Timezone         string
	Language         string
}

// DeviceInfo is what a device states about itself. It is not secret and proves nothing.
// NewDeviceInfo creates one.
type DeviceInfo struct{ fields DeviceFields }

// NewDeviceInfo checks the fields: a NUL or broken UTF-8 is fault.Invalid with code invalid_input,
// more than 512 characters with code validation_error (contract ). All wrong fields are
// named; if some cannot be read, only those.
func NewDeviceInfo(f DeviceFields) (DeviceInfo, error) {
	cannotRead, tooLong := map[string]string{}, map[string]string{}
	for _, field := range [...]struct{ name, value string }{
		{"deviceInfo.userAgent", f.UserAgent},
		{"deviceInfo.screenResolution", f.ScreenResolution},
		{"deviceInfo.timezone", f.Timezone},
		{"deviceInfo.language", f.Language},
	} {
		if problem := textProblem(field.value); problem != "" {
			cannotRead[field.name] = problem
		} else if utf8.RuneCountInString(field.value) > maxDeviceField {
			tooLong[field.name] = "must have at most 512 characters"
		}
	}
	switch {
	case len(cannotRead) > 0:
		return DeviceInfo{}, InvalidFields(CodeInvalidInput, cannotRead)
	case len(tooLong) > 0:
		return DeviceInfo{}, InvalidFields(CodeValidation, tooLong)
	}
	return DeviceInfo{f}, nil
}

// UserAgent returns the user agent as it was sent.
func (d DeviceInfo) UserAgent() string { return d.fields.UserAgent }

// ScreenResolution returns the size of the screen as it was sent.
func (d DeviceInfo) ScreenResolution() string { return d.fields.ScreenResolution }

// Timezone returns the time zone as it was sent.
func (d DeviceInfo) Timezone() string { return d.fields.Timezone }

// Language returns the language as it was sent.
func (d DeviceInfo) Language() string { return d.fields.Language }

// Identity returns the identity of the device for a user: SHA-256, in hexadecimal, over the user id
// and the four fields, without the browser's version (contract A-36). The fields can be guessed
// from it, so it must not be shown as it is. Each part is written after its length, so that no two
// inputs give the same bytes.
func (d DeviceInfo) Identity(user UserID) DeviceIdentity {
	h := sha256.New()
	for _, part := range [...]string{
		string(user), withoutBrowserVersion(d.fields.UserAgent), d.fields.ScreenResolution, d.fields.Timezone,
		d.fields.Language,
	} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:])    // a hash never fails to write
		_, _ = h.Write([]byte(part)) // likewise
	}
	return DeviceIdentity(hex.EncodeToString(h.Sum(nil)))
}

var (
	// productVersion matches the version after a product token, as in "Chrome/126.0.0.0" or
	// "Mobile/15E148".
	productVersion = regexp.MustCompile(`/v?[0-9][^\s()]*`)
	// commentVersion matches the browser versions of Firefox and Internet Explorer in a comment.
	commentVersion = regexp.MustCompile(`(rv:|MSIE |Trident/)[0-9][0-9.a-z]*`)
)

// withoutBrowserVersion returns a user agent without the version of its products (RFC 9110, section
// 10.1.5). Comments, in parentheses, name the operating system and are kept, except for the browser
// versions in them.
func withoutBrowserVersion(userAgent string) string {
	var b strings.Builder
	for userAgent != "" {
		products, comment, rest := cutComment(userAgent)
		b.WriteString(productVersion.ReplaceAllString(products, ""))
		b.WriteString(commentVersion.ReplaceAllString(comment, "$1"))
		userAgent = rest
	}
	return b.String()
}

// cutComment splits s into the text before its first comment, the comment with its parentheses, and
// the rest. Comments nest; one that is not closed extends to the end.
func cutComment(s string) (products, comment, rest string) {
	start := strings.IndexByte(s, '(')
	if start < 0 {
		return s, "", ""
	}
	depth := 0
	for i := start; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return s[:start], s[start : i+1], s[i+1:]
		}
	}
	return s[:start], s[start:], ""
}
