package valkey

import (
	"fmt"
	"testing"
)

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	var b breaker
	for range 3 {
		for range tripAfter - 1 {
			if b.silent() || b.refuses() {
				t.Fatal("open before its time")
			}
		}
		b.answered()
	}
	for n := 1; n <= 2*tripAfter; n++ {
		if opened := b.silent(); opened != (n == tripAfter) {
			t.Errorf("failure %d: opened %t", n, opened)
		}
	}
	if !b.refuses() {
		t.Error("closed after failures in a row")
	}
	b.answered() // a straggler's answer
	if !b.refuses() {
		t.Error("closed by a straggler, while the link still waits")
	}
	if !b.reset() || b.refuses() || b.reset() {
		t.Error("reset does not close once")
	}
}

func TestSeenForgetsButNeverMistakes(t *testing.T) {
	s := newSeen()
	for i := range 2 * seenSlots {
		key := fmt.Sprint(i)
		if s.has(key) {
			t.Fatalf("%q was never noted", key)
		}
		s.note(key)
		if !s.has(key) {
			t.Fatalf("%q was noted just now", key)
		}
	}
}
