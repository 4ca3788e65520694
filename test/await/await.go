// Package await is how tests wait for what other goroutines and processes do: for a condition,
// never for a fixed time. It makes no assertion about how long that takes. The timeout only ends a
// test that would wait for ever.
package await

import (
	"flag"
	"testing"
	"time"
)

// Timeout is the longest time that a test waits for anything.
const Timeout = time.Minute

// The time between two calls of a condition is a part of the time waited so far, so that a
// condition that is expensive to check does not keep the machine busy.
const (
	shortestInterval = time.Millisecond
	longestInterval  = 50 * time.Millisecond
)

// Until waits until holds returns true. It fails the test if that does not happen within Timeout;
// what says for what it waited.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); {
		waited := time.Since(begun)
		if waited > Timeout {
			t.Fatalf("%s: not within %v", what, Timeout)
		}
		time.Sleep(min(max(waited/8, shortestInterval), longestInterval))
	}
}

// Receive waits until a value comes from a channel, and returns it. It fails the test if the
// channel is closed or nothing comes within Timeout; what says for what it waited.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case value, open := <-from:
		if !open {
			t.Fatalf("%s: the channel is closed", what)
		}
		return value
	case <-time.After(Timeout):
		t.Fatalf("%s: not within %v", what, Timeout)
		panic("unreachable")
	}
}

// Closed waits until a channel is closed, as the channel of a context or a process is at its end.
func Closed[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	for {
		select {
		case _, open := <-ch:
			if !open {
				return
			}
		case <-time.After(Timeout):
			t.Fatalf("%s: not within %v", what, Timeout)
		}
	}
}

// AtOnce lets n of the parallel tests of a package run at once, also on fewer cores, for packages
// whose tests wait most of their time and use little CPU. Call it in TestMain.
func AtOnce(n string) {
	flag.Parse()
	if err := flag.Set("test.parallel", n); err != nil {
		panic(err) // every test process has the flag
	}
}
