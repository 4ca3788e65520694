// Package moment says how far a time is from now: for people, in words, and whether it comes soon. It is not for clocks
// (package clock).
package moment

import (
	"strconv"
	"time"
)

// Ago formats a time for people as the distance from now, and as a day if that is more than 30
// days.
func Ago(t, now time.Time) string {
	between, before, after := now.Sub(t), "", "\u00a0ago"
	if between < 0 {
		between, before, after = -between, "in\u00a0", ""
	}
	amount := func(n time.Duration, unit string) string {
		if n != 1 && unit != "min" {
			unit += "s"
		}
		return before + strconv.Itoa(int(n)) + "\u00a0" + unit + after
	}
	const day = 24 * time.Hour
	switch {
	case between < time.Minute && before == "":
		return "just\u00a0now"
	case between < time.Hour:
		return amount(max(1, between/time.Minute), "min")
	case between < day:
		return amount(between/time.Hour, "hour")
	case between <= 30*day:
		return amount(between/day, "day")
	}
	return t.UTC().Format("2\u00a0Jan\u00a02006")
}

// soon is how long before its end people are told of it.
const soon = 14 * 24 * time.Hour

// EndsSoon reports whether something that ends at a time, which may be zero for never, ends within the next 14 days.
func EndsSoon(at, now time.Time) bool { return at.After(now) && at.Sub(now) < soon }
