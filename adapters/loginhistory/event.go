package loginhistory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// lineFields are the fields of a line by their exact names. Fields that the replay does not use are
// allowed: recorded logins often carry labels.
type lineFields map[string]json.RawMessage

// record is a parsed line.
type record struct {
	id    json.RawMessage // unchanged
	label string          // empty if the line has no label that is a text
	who   learning.Person
	event replay.Event
}

// parseEvent parses a line. An error names the field.
func parseEvent(line []byte) (record, error) {
	var r lineFields
	if err := json.Unmarshal(line, &r); err != nil {
		return record{}, errors.New("is not a JSON object: " + err.Error())
	}
	var e replay.Event
	var err error
	f := fieldParser{}
	if f.idField(r["id"]) == "" {
		f.setError("id", "must be a string or a number")
	}
	e.At = f.timeField(r["ts"])
	e.User = f.userField(r)
	if e.Address, err = netip.ParseAddr(f.textField("ip", r["ip"])); err != nil {
		f.setError("ip", "must be an IP address")
	}
	e.Location = f.locationField(r)
	e.Reputation = f.reputationField(r["ipReputation"])
	e.Device = f.deviceField(r)
	if correct := f.answerField("passwordCorrect", r["passwordCorrect"]); correct == replay.Unrecorded {
		f.setError("passwordCorrect", "must be true or false")
	} else {
		e.PasswordCorrect = correct == replay.Yes
	}
	e.StepUpPassed = f.answerField("stepUpPassed", r["stepUpPassed"])
	e.DeviceTrusted = f.answerField("deviceTrusted", r["deviceTrusted"])
	e.DeviceTokenShown = f.answerField("deviceTokenShown", r["deviceTokenShown"])
	return record{r["id"], labelField(r["label"]), personFields(r), e}, f.err
}

// personFields returns the id and the e-mail address that may be those of an account. The record
// may contain others: they are left out.
func personFields(r lineFields) (p learning.Person) {
	var id, email string
	if json.Unmarshal(r["userId"], &id) == nil {
		p.ID, _ = auth.ParseUUID[auth.UserID]("userId", id) // another text is no id of an account
	}
	if json.Unmarshal(r["email"], &email) == nil {
		p.Email, _ = auth.ParseEmail(email) // another text is no address of an account
	}
	return p
}

// labelField returns a label. Records may use the name for something else, which is ignored.
func labelField(raw json.RawMessage) string {
	var label string
	if isMissing(raw) || json.Unmarshal(raw, &label) != nil {
		return ""
	}
	return label
}

// fieldParser parses fields and keeps the first error.
type fieldParser struct{ err error }

// setError keeps an error about a field, unless there is an earlier one.
func (f *fieldParser) setError(field, problem string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s %s", field, problem)
	}
}

// isMissing reports whether a field is absent or null.
func isMissing(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// textField parses a string, which is empty if the field is missing.
func (f *fieldParser) textField(field string, raw json.RawMessage) (s string) {
	if !isMissing(raw) && json.Unmarshal(raw, &s) != nil {
		f.setError(field, "must be a string")
	}
	return s
}

// answerField parses a boolean, which is Unrecorded if the field is missing.
func (f *fieldParser) answerField(field string, raw json.RawMessage) replay.RecordedBool {
	var yes bool
	switch {
	case isMissing(raw):
		return replay.Unrecorded
	case json.Unmarshal(raw, &yes) != nil:
		f.setError(field, "must be true or false")
	case yes:
		return replay.Yes
	}
	return replay.No
}

// maxIDLength is the maximum length of an id in bytes.
const maxIDLength = 256

// idField parses an id, which is a string or a number. It returns an empty id for any other value,
// and for one that is too long.
func (f *fieldParser) idField(raw json.RawMessage) string {
	var text string
	var number json.Number
	switch {
	case isMissing(raw) || len(raw) > maxIDLength:
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return text
	case raw[0] != '"' && json.Unmarshal(raw, &number) == nil:
		return number.String()
	}
	return ""
}

// userField returns the userId, or the e-mail address if there is no userId. The address may be
// anything, because a record may contain a hash of it.
func (f *fieldParser) userField(r lineFields) auth.UserID {
	if !isMissing(r["userId"]) {
		id := f.idField(r["userId"])
		if id == "" {
			f.setError("userId", "must be a string or a number")
		}
		return auth.UserID("id " + id)
	}
	email := strings.ToLower(strings.TrimSpace(f.textField("email", r["email"])))
	switch {
	case email == "":
		f.setError("userId", "is missing, and so is email")
	case len(email) > maxIDLength:
		f.setError("email", "is too long")
	}
	return auth.UserID("email " + email)
}

// maxSeconds is the end of the year 9999. A time of today in milliseconds is greater.
const maxSeconds = 253402300799

// timeField parses an RFC 3339 time, or Unix seconds with an optional fraction. Both must be in the
// years 1970 to 9999.
func (f *fieldParser) timeField(raw json.RawMessage) time.Time {
	var text string
	if json.Unmarshal(raw, &text) == nil && !isMissing(raw) {
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.Unix() >= 0 && at.Unix() <= maxSeconds {
			return at.UTC()
		}
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil && !isMissing(raw) && seconds >= 0 && seconds <= maxSeconds {
		whole, part := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
	}
	f.setError("ts", "must be an RFC 3339 time or Unix seconds, from 1970 to 9999")
	return time.Time{}
}

// locationField returns the recorded location, or nil if the record has neither a country nor
// coordinates.
func (f *fieldParser) locationField(r lineFields) *risk.Location {
	coordinates := f.coordinatesField(r["lat"], r["lon"])
	l := risk.Location{
		State: risk.Known, Country: f.countryField(r["country"]), Coordinates: coordinates,
		Network: f.networkField(r["asn"]),
	}
	if len(r["country"]) == 0 && coordinates == nil {
		return nil
	}
	if l.Country == "" && coordinates == nil {
		l.State = risk.Unanswered
	}
	return &l
}

// countryField parses a country code in upper or lower case.
func (f *fieldParser) countryField(raw json.RawMessage) string {
	code := strings.ToUpper(f.textField("country", raw))
	if code != "" && !risk.IsCountry(code) {
		f.setError("country", "must be an ISO 3166 code of two letters")
	}
	return code
}

// coordinatesField parses lat and lon, which must both be present or both be missing.
func (f *fieldParser) coordinatesField(lat, lon json.RawMessage) *risk.Coordinates {
	if isMissing(lat) && isMissing(lon) {
		return nil
	}
	return &risk.Coordinates{Latitude: f.degreesField("lat", lat, 90), Longitude: f.degreesField("lon", lon, 180)}
}

// degreesField parses an angle from -most to most degrees.
func (f *fieldParser) degreesField(field string, raw json.RawMessage, most float64) (d float64) {
	if isMissing(raw) || json.Unmarshal(raw, &d) != nil || math.Abs(d) > most {
		f.setError(field, fmt.Sprintf("must be a number from -%[1]g to %[1]g; lat and lon go together", most))
	}
	return d
}

// networkField parses a network number like 64500 or "AS64500".
func (f *fieldParser) networkField(raw json.RawMessage) risk.Network {
	if isMissing(raw) {
		return risk.Network{}
	}
	digits := strings.TrimPrefix(strings.ToUpper(f.idField(raw)), "AS")
	number, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		f.setError("asn", "must be the number of a network, such as 64500 or AS64500")
	}
	return risk.Network{ASN: uint32(number)}
}

// reputationField returns the recorded reputation of the address: nil if the field is absent, and
// Unanswered if it is null.
func (f *fieldParser) reputationField(raw json.RawMessage) *risk.Reputation {
	if len(raw) == 0 {
		return nil
	}
	if isMissing(raw) {
		return &risk.Reputation{State: risk.Unanswered}
	}
	class, ok := risk.ParseAddressClass(f.textField("ipReputation", raw))
	if !ok {
		f.setError("ipReputation", "must be clean, hosting, proxy, tor or listed")
	}
	return &risk.Reputation{State: risk.Known, Class: class}
}

// deviceField parses the properties of the device.
func (f *fieldParser) deviceField(r lineFields) auth.DeviceInfo {
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent:        f.textField("userAgent", r["userAgent"]),
		ScreenResolution: f.textField("screenResolution", r["screenResolution"]),
		Timezone:         f.textField("timezone", r["timezone"]), Language: f.textField("language", r["language"]),
	})
	if why, ok := fault.As(err); ok && f.err == nil {
		f.err = errors.New(strings.TrimPrefix(why.Message, "deviceInfo."))
	}
	return d
}
