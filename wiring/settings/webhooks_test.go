package settings

import (
	"strings"
	"testing"
	"time"
)

func TestRetryFor(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 24 * time.Hour, "1s": time.Second, "720h": 720 * time.Hour} {
		environ := []string{"WEBHOOK_RETRY_FOR=" + value}
		if value == "" {
			environ = nil
		}
		s, err := Read(environ)
		if err != nil || s.Deliveries.For != want || s.Deliveries.First != 5*time.Second {
			t.Errorf("%q gives %+v, %v, want %v", value, s.Deliveries, err, want)
		}
	}
	for _, value := range []string{"0s", "999ms", "721h", "-1h", "1", "a day"} {
		if _, err := Read([]string{"WEBHOOK_RETRY_FOR=" + value}); err == nil ||
			!strings.HasPrefix(err.Error(), "WEBHOOK_RETRY_FOR") {
			t.Errorf("WEBHOOK_RETRY_FOR=%s gives %v, want an error that begins with the setting", value, err)
		}
	}
}
