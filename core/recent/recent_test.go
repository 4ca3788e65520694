package recent_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/recent"
)

// TestGenerations checks that a value stays for one generation more, and that a generation ends when it is
// full, too old, or of a clock that was set back.
func TestGenerations(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		bounds recent.Bounds
		size   int
		steps  []time.Duration // of the values that follow the first one
		known  bool            // the first one at the end
	}{
		"within the bounds":         {recent.Bounds{Size: 3, Age: time.Minute}, 1, []time.Duration{0, time.Minute}, true},
		"one generation later":      {recent.Bounds{Size: 2, Age: time.Minute}, 1, []time.Duration{0, 0, 0}, true},
		"two generations later":     {recent.Bounds{Size: 2, Age: time.Minute}, 1, []time.Duration{0, 0, 0, 0}, false},
		"large values":              {recent.Bounds{Size: 5, Age: time.Minute}, 3, []time.Duration{0, 0}, false},
		"too old once":              {recent.Bounds{Size: 9, Age: time.Minute}, 1, []time.Duration{time.Minute + 1}, true},
		"too old twice":             {recent.Bounds{Size: 9, Age: time.Minute}, 1, []time.Duration{time.Minute + 1, 3 * time.Minute}, false},
		"a clock that was set back": {recent.Bounds{Size: 9, Age: time.Minute}, 1, []time.Duration{-1, -2}, false},
		"no age":                    {recent.Bounds{Size: 9}, 1, []time.Duration{time.Hour, -time.Hour}, true},
	} {
		var m recent.Memory[int, string]
		if _, ok := m.Get(0); ok {
			t.Errorf("%s: an empty memory has a value", name)
		}
		m.Put(0, "first", c.size, noon, c.bounds)
		for i, step := range c.steps {
			m.Put(i+1, "other", c.size, noon.Add(step), c.bounds)
			if got, ok := m.Get(i + 1); !ok || got != "other" {
				t.Errorf("%s: the last value is %q", name, got)
			}
		}
		if got, ok := m.Get(0); ok != c.known || ok && got != "first" {
			t.Errorf("%s: the first value is %q, known %v", name, got, ok)
		}
	}
}
