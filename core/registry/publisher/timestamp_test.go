package publisher

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestCheckTimestampAcceptsTimesNearby(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.FixedZone("", 3600))
	for _, s := range []string{
		"2026-01-31T11:00:00Z", "2026-01-31T11:00:00.0Z", "2026-01-31T11:00:00.123456789Z",
		"2026-01-31T11:00:00.1234567891Z",
		"2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00+00:00", "2026-01-31T11:00:00-00:00",
		"2026-02-01T10:59:00+23:59", "2026-01-30T11:01:00-23:59",
		"2026-01-31T11:00:15Z", "2026-01-31T10:59:45Z", "2026-01-31T10:59:45.000000001Z",
	} {
		if err := CheckTimestamp(s, now); err != nil {
			t.Errorf("CheckTimestamp(%q) = %v", s, err)
		}
	}
}

func TestCheckTimestampRefusesOtherTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.FixedZone("", 3600))
	for _, s := range []string{
		"2026-01-31T11:00:15.000000001Z", "2026-01-31T10:59:44.999999999Z", "2026-01-31T11:00:16Z",
		"2026-01-31T12:00:00Z",
		"2026-01-31T11:00:00+01:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
	} {
		err := CheckTimestamp(s, now)
		if !fault.Is(err, fault.Unauthenticated) || !strings.Contains(err.Error(), "2026-01-31T11:00:00Z") ||
			!strings.Contains(err.Error(), "15 seconds") {
			t.Errorf("CheckTimestamp(%q) = %v, want a refusal with the time of the service", s, err)
		}
	}
}

// TestCheckTimestampRefusesOtherForms has forms that time.Parse accepts although RFC 3339 does not,
// and others.
func TestCheckTimestampRefusesOtherForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC)
	for _, s := range []string{
		// time.Parse accepts some of these
		"2026-01-31T11:00:00,5Z", "2026-02-01T11:00:00+24:00", "2026-01-31T11:60:00+00:60", "2026-01-31T11:00:00+00:60",
		"", "now", "1769857200", "2026-01-31", "2026-01-31T11:00Z", "2026-01-31 11:00:00Z", "2026-01-31T11:00:00",
		"2026-01-31T11:00:00+0000",
		"2026-01-31T11:00:00 Z", " 2026-01-31T11:00:00Z", "2026-01-31T11:00:00Z\n", "2026-01-31T11:00:00Z\x00",
		"2026-1-31T11:00:00Z", "2026-01-31T1:00:00Z",
		"2026-01-31T11:00:00.Z", "2026-02-30T11:00:00Z", "2026-13-01T11:00:00Z", "2026-01-31T24:00:00Z",
		"2026-01-31T11:00:60Z", "+2026-01-31T11:00:00Z",
		"Sat, 31 Jan 2026 11:00:00 GMT", "2026-01-31t11:00:00z", "２026-01-31T11:00:00Z",
	} {
		if err := CheckTimestamp(s, now); !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), "timestamp must") {
			t.Errorf("CheckTimestamp(%q) = %v, want a fault that names the field", s, err)
		}
	}
}
