package review

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Mail is how a reviewer wants mail of what waits.
type Mail string

// The choices.
const (
	AtOnce Mail = "at-once" // within a minute of a submission
	Daily  Mail = "daily"   // at digestHour
	NoMail Mail = "none"
)

// ParseMail returns the choice with the given name. It returns fault.Invalid for any other text.
func ParseMail(s string) (Mail, error) { return fault.OneOf("mail", s, AtOnce, Daily, NoMail) }

const (
	digestHour = 7 // UTC
	// settled is how old a submission is at least when a mail is sent: it becomes visible after its time, and the clocks
	// of instances differ. collected is how old the first one is at least, so that others are in the same mail.
	settled   = 10 * time.Second
	collected = 35 * time.Second
)

// Until returns until when submissions are in a mail that is sent now, and until when the first one of them was made at
// the latest; the zero times for no mail.
func (m Mail) Until(now time.Time) (until, first time.Time) {
	switch m {
	case NoMail:
		return time.Time{}, time.Time{}
	case Daily:
		day := now.UTC().Truncate(24 * time.Hour).Add(digestHour * time.Hour)
		if day.After(now.Add(-settled)) {
			day = day.AddDate(0, 0, -1)
		}
		return day, day
	}
	return now.Add(-settled), now.Add(-collected)
}

// Notified is when a reviewer was last notified of what waits, and how the reviewer wants it.
type Notified struct {
	At   time.Time // until when submissions were in a mail; the zero time if never
	Mail Mail
}
