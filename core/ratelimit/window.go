package ratelimit

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"
)

// MaxKey is the greatest length of a counter's key, in bytes; a longer one is hashed
// (contract L-22).
const MaxKey = 200

// MaxPrefix is the greatest length of a prefix, in bytes. It leaves room for the rest of the key.
const MaxPrefix = 100

// ClockSkew is the time that a store keeps a counter after its window, for instances whose clocks
// are slower than the clock of the instance that made the counter.
const ClockSkew = time.Second

// Window is one fixed window of time.
type Window struct {
	Start  int64 // Unix seconds
	Length time.Duration
}

// WindowAt returns the window of the given length that contains now. Windows follow each other
// since the epoch: floor(now/length)·length (contract L-21). The length is rounded down to whole
// seconds, and is at least one second.
func WindowAt(now time.Time, length time.Duration) Window {
	seconds := max(int64(length/time.Second), 1)
	unix := now.Unix()
	into := unix % seconds
	if into < 0 {
		into += seconds
	}
	return Window{Start: unix - into, Length: time.Duration(seconds) * time.Second}
}

// End returns when the window ends and the next begins.
func (w Window) End() time.Time {
	return time.Unix(w.Start, 0).Add(w.Length)
}

// UntilReset returns the rest of the window, in whole seconds from 1 to its length. now must be
// within the window.
func (w Window) UntilReset(now time.Time) time.Duration {
	return w.Length - time.Duration(now.Unix()-w.Start)*time.Second
}

// Counter identifies one counter: what it counts, and in which window.
type Counter struct {
	// Prefix is the literal beginning of every key, hashed or not, so that the users of a shared
	// store can distinguish their keys. ValidPrefix must hold.
	Prefix  string
	Domain  Domain
	Entries []Entry
	Window  Window
	// Limit is that of a counter of another algorithm than FixedWindow, whose key does not depend
	// on the start of the window.
	Limit Limit
}

// ValidPrefix reports whether every store accepts keys with the prefix: at most MaxPrefix bytes of
// printable ASCII without spaces.
func ValidPrefix(prefix string) bool {
	return len(prefix) <= MaxPrefix && isPrintableASCII([]byte(prefix))
}

// AppendKey appends the key of a counter to dst. No two counters have the same key: each text is
// written after its length, and the key ends with the lengths of window and prefix. A key over
// MaxKey bytes, or with bytes that a store refuses, is replaced by the prefix and a SHA-256 sum
// (contract L-22).
//
// It allocates nothing when dst has room.
func AppendKey(dst []byte, c Counter) []byte {
	from := len(dst)
	dst = append(dst, c.Prefix...)
	dst = appendText(dst, string(c.Domain))
	for i := range c.Entries {
		dst = appendText(dst, c.Entries[i].Key)
		dst = appendText(dst, c.Entries[i].Value)
	}
	dst = appendNumber(dst, int64(c.Window.Length/time.Second))
	dst = c.Limit.appendState(dst, c.Window)
	dst = appendNumber(dst, int64(len(c.Prefix)))
	if key := dst[from:]; len(key) > MaxKey || !isPrintableASCII(key) {
		return appendHashed(dst[:from], key, c.Prefix)
	}
	return dst
}

// appendHashed appends the hashed form of key, which may overwrite key itself. A key without a hash
// never has a '#' after the prefix, because a length is there.
func appendHashed(dst, key []byte, prefix string) []byte {
	sum := sha256.Sum256(key)
	dst = append(dst, prefix...)
	dst = append(dst, '#')
	dst = base64.RawURLEncoding.AppendEncode(dst, sum[:])
	return appendNumber(dst, int64(len(prefix)))
}

func appendText(dst []byte, text string) []byte {
	dst = strconv.AppendInt(dst, int64(len(text)), 10)
	dst = append(dst, ':')
	return append(dst, text...)
}

func appendNumber(dst []byte, n int64) []byte {
	dst = append(dst, '/')
	return strconv.AppendInt(dst, n, 10)
}

// isPrintableASCII reports whether all bytes are printable ASCII other than the space.
func isPrintableASCII(key []byte) bool {
	for _, b := range key {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}
