package argon

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// measured are the metrics of one hasher.
type measured struct {
	t        *testing.T
	registry *prometheus.Registry
}

// want compares the counters of outcomes, how many are waiting, and how many durations were seen.
func (m measured) want(done, refused, canceled float64) {
	m.t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		m.t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	for name, value := range map[string]float64{
		"tollgate_password_hashes_total done":     done,
		"tollgate_password_hashes_total refused":  refused,
		"tollgate_password_hashes_total canceled": canceled,
		"tollgate_password_hash_wait_seconds":     done,
		"tollgate_password_hash_duration_seconds": done,
		"tollgate_password_hashes_waiting":        0,
	} {
		if have, there := got[name]; !there || have != value {
			m.t.Errorf("%s is %v (there: %v), want %v", name, have, there, value)
		}
	}
}

// TestMetrics occupies all cores, so that the test decides which hashes wait, are refused or are
// canceled.
func TestMetrics(t *testing.T) {
	h, err := New(Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 1}, system.Entropy{})
	if err != nil {
		t.Fatal(err)
	}
	m := measured{t, prometheus.NewRegistry()}
	h.Measure(m.registry)
	m.want(0, 0, 0)
	if err := h.VerifyNone(t.Context(), auth.Password{}); err != nil {
		t.Fatal(err)
	}
	m.want(1, 0, 0)

	for range cap(h.cores) {
		h.queue <- struct{}{}
		h.cores <- struct{}{}
	}
	ctx, leave := context.WithCancel(t.Context())
	waiter := make(chan error)
	go func() { waiter <- h.VerifyNone(ctx, auth.Password{}) }()
	for deadline := time.Now().Add(time.Minute); h.countWaiting() != 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	late, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := h.VerifyNone(late, auth.Password{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("beside the one who waits: %v", err)
	}
	leave()
	if err := <-waiter; err == nil {
		t.Error("who left got an answer")
	}
	m.want(1, 1, 1)
}
