package pause_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !pause.For(t.Context(), time.Hour) || time.Since(start) != time.Hour {
			t.Errorf("For(an hour) returned after %v", time.Since(start))
		}
		if !pause.For(t.Context(), -time.Second) {
			t.Error("For(a negative duration) returned false")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		if pause.For(ctx, time.Hour) || time.Since(start) != time.Minute {
			t.Errorf("For with a context of one minute returned after %v", time.Since(start))
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		"86400":                         24 * time.Hour,
		"-1":                            0,
		"1.5":                           0,
		"99999999999":                   0,
		"Fri, 31 Dec 1999 23:59:59 GMT": 0,
	} {
		h := http.Header{}
		h.Set("Retry-After", value)
		if got := pause.RetryAfter(h); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
	if got := pause.RetryAfter(http.Header{}); got != 0 {
		t.Errorf("RetryAfter without the header = %v, want 0", got)
	}
}

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	var b pause.Backoff
	for i, want := range []time.Duration{0, 5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 250 * ms, 250 * ms} {
		if got := b.Next(250 * ms); got != want {
			t.Errorf("delay %d is %v, want %v", i+1, got, want)
		}
	}
}
