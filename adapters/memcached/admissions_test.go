package memcached

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// TestTicketOfACallerWhoGivesUp requires that hits which wait for another call are not decided once
// their caller has given up, and that the others still are.
func TestTicketOfACallerWhoGivesUp(t *testing.T) {
	var slot admissionSlot
	newTicket := func() *admissionTicket { return &admissionTicket{slot: &slot, done: make(chan struct{})} }
	if !slot.enter(newTicket()) {
		t.Fatal("the first call must decide itself")
	}
	leaves, stays := newTicket(), newTicket()
	if slot.enter(leaves) || slot.enter(stays) {
		t.Fatal("two calls decide at the same time")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := leaves.wait(ctx); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the caller that gave up: %v", err)
	}
	if waiting := slot.takeWaiting(); len(waiting) != 1 || waiting[0] != stays || !slot.busy {
		t.Errorf("%d tickets wait, want the other one", len(waiting))
	}
	if waiting := slot.takeWaiting(); len(waiting) != 0 || slot.busy {
		t.Error("the slot does not become free")
	}
}
