package argon

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRemainingWork checks that a hash with lower parameters plus its remaining work costs as much
// as a hash with the current parameters, and that no part of the work needs more memory.
func TestRemainingWork(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) parameters {
		lanes := rapid.Uint8Range(1, maxParallelism).Draw(t, "lanes")
		return parameters{
			memory:      rapid.Uint32Range(8*uint32(lanes), maxMemoryKiB).Draw(t, "memory"),
			iterations:  rapid.Uint32Range(1, maxIterations).Draw(t, "iterations"),
			parallelism: lanes,
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		stored, present := draw.Draw(t, "stored"), draw.Draw(t, "present")
		total := stored.workFactor()
		for _, rest := range stored.remainingWork(present) {
			if err := rest.validateCosts(); err != nil || rest.memory > present.memory {
				t.Fatalf("parameters %+v are invalid or need more memory than %+v: %v", rest, present, err)
			}
			total += rest.workFactor()
		}
		off := math.Abs(float64(total) - float64(max(stored.workFactor(), present.workFactor())))
		if off >= 8*float64(present.parallelism) {
			t.Fatalf("a hash with %+v and its remaining work cost %d, want %d, the cost of %+v", stored, total,
				present.workFactor(), present)
		}
	})
}
