package valkey

import "testing"

func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	var b breaker
	for range 3 {
		for range failuresToOpen - 1 {
			if b.recordNoAnswer(1) || b.isOpen() {
				t.Fatal("the breaker opened too early")
			}
		}
		b.recordAnswer()
	}
	for n := 1; n <= 2*failuresToOpen; n++ {
		if opened := b.recordNoAnswer(1); opened != (n == failuresToOpen) {
			t.Errorf("failure %d: opened %t", n, opened)
		}
	}
	if !b.isOpen() {
		t.Error("the breaker is closed after consecutive failures")
	}
	var merged breaker
	if merged.recordNoAnswer(failuresToOpen-1) || !merged.recordNoAnswer(2) {
		t.Error("a call for several callers does not count for each of them")
	}
	b.recordAnswer() // a straggler's answer
	if !b.isOpen() {
		t.Error("a late answer closed the breaker")
	}
	if !b.closeIfOpen() || b.isOpen() || b.closeIfOpen() {
		t.Error("closeIfOpen did not report exactly one change")
	}
}
