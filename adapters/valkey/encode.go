package valkey

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// copyFormat begins every copy. A copy of another format is a miss, so instances of two versions can share a store.
const copyFormat = 1

// dropFormat begins the mark that a session was dropped; the time in microseconds follows in decimal digits.
const dropFormat = 2

var errCopy = errors.New("not a copy of a session")

// appendCopy writes a session and when it was read: the format, that time, then each field in the order of auth.Session.
// Numbers are varints, texts their length and bytes, times nanoseconds since the epoch. A session holds no secrets: tokens
// are stored elsewhere, and hashed.
func appendCopy(b []byte, s *auth.Session, read time.Time) []byte {
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
	b = appendText(b, addressText(s.IPAddress))
	b = appendTime(b, s.EndedAt)
	return appendText(b, string(s.EndReason))
}

// readCopy reads what appendCopy wrote, and nothing else.
func readCopy(b []byte) (s auth.Session, read time.Time, err error) {
	r := copyReader{rest: b}
	if r.byte() != copyFormat {
		return auth.Session{}, time.Time{}, errCopy
	}
	read = r.time()
	s.ID, s.UserID, s.DeviceID = auth.SessionID(r.text()), auth.UserID(r.text()), auth.DeviceID(r.text())
	s.DeviceIdentity = auth.DeviceIdentity(r.text())
	s.TrustLevel = auth.TrustLevel(r.byte())
	s.RiskScore = int(r.number())
	s.CreatedAt, s.LastActivity, s.ExpiresAt, s.MaxExpiresAt = r.time(), r.time(), r.time(), r.time()
	s.IPAddress = r.address()
	s.EndedAt = r.time()
	s.EndReason = auth.EndReason(r.text())
	if r.failed || len(r.rest) > 0 {
		return auth.Session{}, time.Time{}, errCopy
	}
	return s, read, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// noTime stands for the zero time, which nanoseconds since the epoch cannot tell.
const noTime = math.MinInt64

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, noTime)
	}
	return binary.AppendVarint(b, t.UnixNano())
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// copyReader reads a copy from its front. After a failure all it reads is zero.
type copyReader struct {
	rest   []byte
	failed bool
}

func (r *copyReader) fail() {
	r.rest, r.failed = nil, true
}

func (r *copyReader) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *copyReader) number() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *copyReader) text() string {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) {
		r.fail()
		return ""
	}
	end := size + int(n) // n is at most the length of the slice
	text := string(r.rest[size:end])
	r.rest = r.rest[end:]
	return text
}

func (r *copyReader) time() time.Time {
	n := r.number()
	if n == noTime || r.failed {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func (r *copyReader) address() netip.Addr {
	text := r.text()
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		r.fail()
	}
	return a
}
