// Package singleusetest has the contract tests of ports/singleuse.
package singleusetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/test/await"
)

// Subject is a store under test.
type Subject struct {
	Store singleuse.Store
	// Advance moves the clock of the store. It is nil if the store has its own clock.
	Advance func(d time.Duration)
}

const (
	long     = time.Hour
	parallel = 50
)

// Run runs the suite. open returns a store in which nothing is claimed.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Subject){
		"the first use of a key is accepted, and no other":  claimsOnce,
		"keys are independent of each other":                claimsSeparately,
		"any text is a key":                                 claimsAnyKey,
		"one of several parallel uses of a key is accepted": claimsInParallel,
		"a key can be used again after its time":            claimsAgain,
		"a claim that is given back can be made again":      claimsReleased,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Unavailable tests a store that cannot be reached.
func Unavailable(t *testing.T, store singleuse.Store) {
	t.Helper()
	if first, err := store.Claim(t.Context(), "key", long); first || !fault.Is(err, fault.Unavailable) {
		t.Errorf("Claim of an unavailable store = %v, %v, want fault.Unavailable", first, err)
	}
	if err := store.Release(t.Context(), "key"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Release of an unavailable store = %v, want fault.Unavailable", err)
	}
}

func claim(t *testing.T, s Subject, key string, ttl time.Duration) (first bool) {
	t.Helper()
	first, err := s.Store.Claim(t.Context(), key, ttl)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return first
}

func claimsOnce(t *testing.T, s Subject) {
	if !claim(t, s, "key", long) {
		t.Error("the first claim is not the first")
	}
	for range 3 {
		if claim(t, s, "key", long) {
			t.Error("a later claim is the first")
		}
	}
}

func claimsSeparately(t *testing.T, s Subject) {
	for _, key := range []string{"key", "Key", "key ", "key2", "ke", "", "1", "#"} {
		if !claim(t, s, key, long) {
			t.Errorf("the first claim of %q is not the first", key)
		}
	}
}

func claimsAnyKey(t *testing.T, s Subject) {
	text := strings.Repeat("x", 10000)
	for _, key := range []string{text, text + "y", "a b", "a\r\nb", "\x00", "\x00\x00", "\xff\xfe", "ü", "日本"} {
		if !claim(t, s, key, long) {
			t.Errorf("the first claim of %.20q is not the first", key)
		}
		if claim(t, s, key, long) {
			t.Errorf("the second claim of %.20q is the first", key)
		}
	}
}

func claimsInParallel(t *testing.T, s Subject) {
	var firsts atomic.Int32
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			first, err := s.Store.Claim(t.Context(), "key", long)
			if err != nil {
				t.Errorf("Claim: %v", err)
			}
			if first {
				firsts.Add(1)
			}
		})
	}
	all.Wait()
	if n := firsts.Load(); n != 1 {
		t.Errorf("%d of %d parallel claims are the first, want 1", n, parallel)
	}
}

func claimsReleased(t *testing.T, s Subject) {
	for _, key := range []string{"never claimed", "key", "key"} {
		if key == "key" && !claim(t, s, key, long) {
			t.Error("the claim is not the first")
		}
		if err := s.Store.Release(t.Context(), key); err != nil {
			t.Fatalf("Release: %v", err)
		}
	}
	for _, key := range []string{"never claimed", "key"} {
		if !claim(t, s, key, long) || claim(t, s, key, long) {
			t.Errorf("%s: it cannot be claimed, or twice", key)
		}
	}
}

// claimsAgain claims a key for a short time and, when that has ended, for a long one. Until then
// the claims for the long time are not the first, and do not prolong the short one.
func claimsAgain(t *testing.T, s Subject) {
	const ttl = time.Second // the shortest that the port has
	if !claim(t, s, "short", ttl) || !claim(t, s, "long", long) {
		t.Error("the first claim is not the first")
	}
	if s.Advance != nil {
		s.Advance(ttl - 1)
		if claim(t, s, "short", long) {
			t.Error("a claim ended early")
		}
		s.Advance(time.Second)
	}
	awaitFirst(t, s, "short")
	if claim(t, s, "short", ttl) {
		t.Error("the key could be claimed twice after the end of its first claim")
	}
	if claim(t, s, "long", long) {
		t.Error("the end of one claim ended another")
	}
}

// awaitFirst claims a key for a long time until a claim is the first.
func awaitFirst(t *testing.T, s Subject, key string) {
	t.Helper()
	await.Until(t, "the end of the claim of "+key, func() bool { return claim(t, s, key, long) })
}
