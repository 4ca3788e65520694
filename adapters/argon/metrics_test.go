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
	"github.com/tollgate-dev/tollgate/test/must"
)

// hasherMetrics are the metrics of one hasher.
type hasherMetrics struct {
	t        *testing.T
	registry *prometheus.Registry
}

// check fails the test unless the counters of outcomes have these values, each hash that was done
// has one wait and one duration, and no call waits.
func (m hasherMetrics) check(done, refused, canceled float64) {
	m.t.Helper()
	families, err := m.registry.Gather()
	must.Succeed(m.t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
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
		if have, exists := got[name]; !exists || have != value {
			m.t.Errorf("%s is %v (exists: %v), want %v", name, have, exists, value)
		}
	}
}

// TestMetrics checks the counters of calls that are done, refused and canceled. It occupies all
// cores, so that it decides which calls wait.
func TestMetrics(t *testing.T) {
	h, err := New(Config{MemoryKiB: 64, Iterations: 1, Parallelism: 1, Queue: 1}, system.Entropy{})
	must.Succeed(t, err)
	m := hasherMetrics{t, prometheus.NewRegistry()}
	h.Measure(m.registry)
	m.check(0, 0, 0)
	must.Succeed(t, h.VerifyNone(t.Context(), auth.Password{}))
	m.check(1, 0, 0)

	for range cap(h.cores) {
		h.queue <- struct{}{}
		h.cores <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiter := make(chan error)
	go func() { waiter <- h.VerifyNone(ctx, auth.Password{}) }()
	for deadline := time.Now().Add(time.Minute); h.countWaiting() != 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the call does not wait although all cores are occupied")
		}
	}
	late, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := h.VerifyNone(late, auth.Password{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a call with a full queue returns %v, want fault.Unavailable", err)
	}
	cancel()
	if err := <-waiter; err == nil {
		t.Error("the canceled call returns no error")
	}
	m.check(1, 1, 1)
}
