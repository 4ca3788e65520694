package jsonstring

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimesHaveSixDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// From the beginning of year 0 to the end of year 9999.
		seconds := rapid.Int64Range(-62_167_219_200, 253_402_300_799).Draw(t, "seconds")
		offset := rapid.IntRange(-12*3600, 12*3600).Draw(t, "offset")
		at := time.Unix(seconds, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(time.FixedZone("", offset))
		want := at.UTC().Format(`"2006-01-02T15:04:05.000000Z"`)
		if got := string(AppendTime(nil, at)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
