package auth

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what authenticator apps speak (RFC 6238); HMAC does not rest on collisions
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The parameters of authenticator codes (contract A-19): those that every app understands.
const (
	totpPeriod = 30 // seconds
	totpDigits = 6
	totpWindow = 1 // steps that a clock may be early or late
)

// Issuer is the name under which an authenticator app lists this service.
type Issuer string

// TOTPSecret is what a person's authenticator app shares with the service: 160 bits (RFC 4226,
// section 4, R6). It prints as a placeholder.
type TOTPSecret [20]byte

// String returns a placeholder.
func (TOTPSecret) String() string { return "[authenticator secret]" }

// GoString returns a placeholder.
func (s TOTPSecret) GoString() string { return s.String() }

// Base32 returns the secret as a person types it into an app: 32 characters.
func (s TOTPSecret) Base32() string { return base32.StdEncoding.EncodeToString(s[:]) }

// URI returns the address that an app reads from a QR code, with the names under which it lists the
// secret: otpauth://totp/ISSUER:PERSON?secret=…&issuer=… and the parameters, as the apps' common
// key format has it.
func (s TOTPSecret) URI(issuer Issuer, person Email) string {
	// Escaped with %20 for a space: not all apps take + for one.
	name := escapeURI(string(issuer))
	return fmt.Sprintf("otpauth://totp/%s:%s?secret=%s&issuer=%s&algorithm=SHA1&digits=%d&period=%d",
		name, escapeURI(string(person)), s.Base32(), name, totpDigits, totpPeriod)
}

func escapeURI(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// Code returns the code of a time step (RFC 6238, section 4.2; RFC 4226, section 5.3).
func (s TOTPSecret) Code(step int64) OTP {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac := hmac.New(sha1.New, s[:])
	_, _ = mac.Write(counter[:]) // a hash never fails to write
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf
	number := binary.BigEndian.Uint32(sum[offset:]) & 0x7fff_ffff
	return OTP(fmt.Sprintf("%0*d", totpDigits, number%1_000_000))
}

// TOTPStep returns the time step of a time.
func TOTPStep(t time.Time) int64 { return t.Unix() / totpPeriod }

// matchStep returns the time step of a code if the step is valid at now and later than last,
// otherwise 0. It takes the same time for a wrong code and a right one.
func (s TOTPSecret) matchStep(code OTP, now time.Time, last int64) int64 {
	var found int64
	present := TOTPStep(now)
	for step := present - totpWindow; step <= present+totpWindow; step++ {
		same := subtle.ConstantTimeCompare([]byte(s.Code(step)), []byte(code)) == 1
		if same && step > last && found == 0 {
			found = step
		}
	}
	return found
}
