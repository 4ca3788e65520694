package valkey

import (
	"fmt"
	"testing"
)

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	var b breaker
	for range 3 {
		for range failuresToOpen - 1 {
			if b.recordNoAnswer() || b.isOpen() {
				t.Fatal("open before its time")
			}
		}
		b.recordAnswer()
	}
	for n := 1; n <= 2*failuresToOpen; n++ {
		if opened := b.recordNoAnswer(); opened != (n == failuresToOpen) {
			t.Errorf("failure %d: opened %t", n, opened)
		}
	}
	if !b.isOpen() {
		t.Error("closed after failures in a row")
	}
	b.recordAnswer() // a straggler's answer
	if !b.isOpen() {
		t.Error("closed by a straggler, while the link still waits")
	}
	if !b.closeIfOpen() || b.isOpen() || b.closeIfOpen() {
		t.Error("reset does not close once")
	}
}

func TestSeenForgetsButNeverMistakes(t *testing.T) {
	s := newKnownKeys()
	for i := range 2 * knownKeySlots {
		key := fmt.Sprint(i)
		if s.contains(key) {
			t.Fatalf("%q was never noted", key)
		}
		s.remember(key)
		if !s.contains(key) {
			t.Fatalf("%q was noted just now", key)
		}
	}
}
