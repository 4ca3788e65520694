package valkey

import "testing"

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	var b breaker
	for range 3 {
		for range failuresToOpen - 1 {
			if b.recordNoAnswer() || b.isOpen() {
				t.Fatal("the breaker opened too early")
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
		t.Error("the breaker is closed after consecutive failures")
	}
	b.recordAnswer() // a straggler's answer
	if !b.isOpen() {
		t.Error("a late answer closed the breaker")
	}
	if !b.closeIfOpen() || b.isOpen() || b.closeIfOpen() {
		t.Error("closeIfOpen did not report exactly one change")
	}
}
