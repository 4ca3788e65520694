// Package await waits in tests for what other goroutines and processes do. It makes no assertion of its
// own about how long that takes: the timeout only ends a test that would wait for ever.
package await

import (
	"testing"
	"time"
)

// interval is the time between two calls of a condition.
const interval = 5 * time.Millisecond

// Until waits until holds returns true. It fails the test if that does not happen within the timeout.
func Until(t testing.TB, timeout time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !holds(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, timeout)
		}
	}
}
