package registryclient

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "30": 30 * time.Second, "-1": 0, "x": 0, "1.5": 0, "99999999999999999999": 0,
		"1000000":                       24 * time.Hour,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:03:05 GMT": 0,
		"Sat, 02 Jan 2027 03:04:05 GMT": 24 * time.Hour,
	} {
		if got := parseRetryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", value, got, want)
		}
	}
}
