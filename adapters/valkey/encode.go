package valkey

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// copyFormat is the first byte of every copy. A copy in another format counts as a cache miss, so
// instances of different versions can share a store. Format 1 had no tag (copyAuthenticator).
const copyFormat = 3

// dropFormat is the first byte of the mark of a dropped session. The time of the drop follows, in
// microseconds, as decimal digits.
const dropFormat = 2

var errInvalidCopy = errors.New("not a copy of a session")

// encodeCopy appends a session and the time at which it was read from the database: the format,
// that time, then the fields in the order of auth.Session. Numbers are varints, texts are a length
// and bytes, times are nanoseconds since the epoch. A session contains no secrets: tokens are
// stored elsewhere, and hashed.
func encodeCopy(b []byte, s *auth.Session, read time.Time) []byte {
	b = append(b, copyFormat)
	b = appendTime(b, read)
	for _, text := range []string{string(s.ID), string(s.UserID), string(s.DeviceID), string(s.DeviceIdentity)} {
		b = appendText(b, text)
	}
	b = append(b, byte(s.TrustLevel))
	b = binary.AppendVarint(b, int64(s.RiskScore))
	for _, at := range []time.Time{s.CreatedAt, s.LastActivity, s.ExpiresAt, s.MaxExpiresAt} {
		b = appendTime(b, at)
	}
	b = appendText(b, formatAddress(s.IPAddress))
	b = appendTime(b, s.EndedAt)
	b = appendText(b, string(s.EndReason))
	return appendTime(b, s.ReauthenticatedAt)
}

// decodeCopy decodes the output of encodeCopy. Any other input is an error.
func decodeCopy(b []byte) (s auth.Session, read time.Time, err error) {
	r := copyDecoder{rest: b}
	if r.nextByte() != copyFormat {
		return auth.Session{}, time.Time{}, errInvalidCopy
	}
	read = r.nextTime()
	s.ID, s.UserID, s.DeviceID = auth.SessionID(r.nextText()), auth.UserID(r.nextText()), auth.DeviceID(r.nextText())
	s.DeviceIdentity = auth.DeviceIdentity(r.nextText())
	s.TrustLevel = auth.TrustLevel(r.nextByte())
	s.RiskScore = int(r.nextNumber())
	s.CreatedAt, s.LastActivity, s.ExpiresAt, s.MaxExpiresAt = r.nextTime(), r.nextTime(), r.nextTime(), r.nextTime()
	s.IPAddress = r.nextAddress()
	s.EndedAt = r.nextTime()
	s.EndReason = auth.EndReason(r.nextText())
	s.ReauthenticatedAt = r.nextTime()
	if r.invalid || len(r.rest) > 0 {
		return auth.Session{}, time.Time{}, errInvalidCopy
	}
	return s, read, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// noTime encodes the zero time, which nanoseconds since the epoch cannot represent.
const noTime = math.MinInt64

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, noTime)
	}
	return binary.AppendVarint(b, t.UnixNano())
}

func formatAddress(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// copyDecoder reads a copy from front to back. After an error it is invalid, and every value is
// zero.
type copyDecoder struct {
	rest    []byte
	invalid bool
}

func (r *copyDecoder) markInvalid() {
	r.rest, r.invalid = nil, true
}

func (r *copyDecoder) nextByte() byte {
	if len(r.rest) == 0 {
		r.markInvalid()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *copyDecoder) nextNumber() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.markInvalid()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *copyDecoder) nextText() string {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) {
		r.markInvalid()
		return ""
	}
	end := size + int(n) // n is at most the length of the slice
	text := string(r.rest[size:end])
	r.rest = r.rest[end:]
	return text
}

func (r *copyDecoder) nextTime() time.Time {
	n := r.nextNumber()
	if n == noTime || r.invalid {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func (r *copyDecoder) nextAddress() netip.Addr {
	text := r.nextText()
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		r.markInvalid()
	}
	return a
}
