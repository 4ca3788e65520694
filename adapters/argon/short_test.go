package argon

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// With what short adds, a hash with lesser parameters costs what a present one does, and needs no
// more memory.
func TestShortMakesUpForLesserParameters(t *testing.T) {
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
				t.Fatalf("%+v cannot be hashed with, or takes more memory than %+v: %v", rest, present, err)
			}
			total += rest.workFactor()
		}
		off := math.Abs(float64(total) - float64(max(stored.workFactor(), present.workFactor())))
		if off >= 8*float64(present.parallelism) {
			t.Fatalf("%+v is made up to %d KiB, %+v costs %d", stored, total, present, present.workFactor())
		}
	})
}
