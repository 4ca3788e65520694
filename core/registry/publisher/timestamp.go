package publisher

import (
	"regexp"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// TimestampTolerance is the greatest difference between a signed timestamp and the clock of the
// service (contract P-3).
const TimestampTolerance = 15 * time.Second

// timestampForm is the form of RFC 3339, section 5.6, in upper case. time.Parse also accepts other
// forms, for example a comma before the fraction and the offset +24:00.
var timestampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// CheckTimestamp returns fault.Invalid if text is not an RFC 3339 time, and fault.Unauthenticated,
// with the time of the service, if it differs from now by more than TimestampTolerance.
func CheckTimestamp(text string, now time.Time) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !timestampForm.MatchString(text) {
		return fault.New(fault.Invalid, "timestamp must be an RFC 3339 time, for example 2026-01-31T12:00:00Z")
	}
	if d := t.Sub(now).Abs(); d > TimestampTolerance {
		return fault.Newf(fault.Unauthenticated,
			"the timestamp differs from the time of this service, %s, by more than %d seconds: check the clock and sign in again",
			now.UTC().Format(time.RFC3339), int(TimestampTolerance.Seconds()))
	}
	return nil
}
