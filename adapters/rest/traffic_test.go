package rest

import (
	"sync"
	"testing"
	"time"
)

// TestTraffic checks that the requests of the last 60 seconds are counted, and no older ones.
func TestTraffic(t *testing.T) {
	t.Parallel()
	h, began := new(Health), time.Unix(1_800_000_000, 0)
	var all sync.WaitGroup
	for second := range 200 {
		for range 4 {
			all.Go(func() { h.count(200+400*(second%2), began.Add(time.Duration(second)*time.Second)) })
		}
		all.Wait()
	}
	if got := h.Traffic(began.Add(200 * time.Second)); got != (Traffic{Requests: 240, Errors: 120}) {
		t.Errorf("after 200 seconds: %+v", got)
	}
	if got := h.Traffic(began.Add(230 * time.Second)); got != (Traffic{Requests: 120, Errors: 60}) {
		t.Errorf("30 seconds later: %+v", got)
	}
	if got := h.Traffic(began.Add(time.Hour)); got != (Traffic{}) {
		t.Errorf("an hour later: %+v", got)
	}
	(*Health)(nil).count(200, began)
}
