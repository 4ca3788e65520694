package loginlog

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
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// record is the fields of a line by their names, which are exact. Other fields are ignored: records carry labels.
type record map[string]json.RawMessage

// parse reads a line. The id is given back as it stands there. Errors name the field.
func parse(line []byte) (id json.RawMessage, e replay.Event, err error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, replay.Event{}, errors.New("is not a JSON object: " + err.Error())
	}
	f := fields{}
	if f.name(r["id"]) == "" {
		f.fail("id", "must be a text or a number")
	}
	e.At = f.instant(r["ts"])
	e.User = f.user(r)
	if e.Address, err = netip.ParseAddr(f.text("ip", r["ip"])); err != nil {
		f.fail("ip", "must be an address")
	}
	e.Location = f.location(r)
	e.Reputation = f.reputation(r["ipReputation"])
	e.Device = f.device(r)
	if correct := f.told("passwordCorrect", r["passwordCorrect"]); correct == replay.Unrecorded {
		f.fail("passwordCorrect", "must be true or false")
	} else {
		e.PasswordCorrect = correct == replay.Yes
	}
	e.StepUpPassed = f.told("stepUpPassed", r["stepUpPassed"])
	e.DeviceTrusted = f.told("deviceTrusted", r["deviceTrusted"])
	e.DeviceTokenShown = f.told("deviceTokenShown", r["deviceTokenShown"])
	return r["id"], e, f.err
}

// fields reads fields and keeps the first failure.
type fields struct{ err error }

func (f *fields) fail(field, problem string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s %s", field, problem)
	}
}

// missing tells a field that is not there, or null.
func missing(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// text reads a text; empty when it is missing.
func (f *fields) text(field string, raw json.RawMessage) (s string) {
	if !missing(raw) && json.Unmarshal(raw, &s) != nil {
		f.fail(field, "must be a text")
	}
	return s
}

// told reads a bool that may be missing.
func (f *fields) told(field string, raw json.RawMessage) replay.RecordedBool {
	var yes bool
	switch {
	case missing(raw):
		return replay.Unrecorded
	case json.Unmarshal(raw, &yes) != nil:
		f.fail(field, "must be true or false")
	case yes:
		return replay.Yes
	}
	return replay.No
}

// maxName bounds ids, in bytes.
const maxName = 256

// name reads what names something, a text or a number; empty when it is neither, or too long.
func (f *fields) name(raw json.RawMessage) string {
	var text string
	var number json.Number
	switch {
	case missing(raw) || len(raw) > maxName:
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return text
	case raw[0] != '"' && json.Unmarshal(raw, &number) == nil:
		return number.String()
	}
	return ""
}

// user returns the userId, or else the e-mail address, however it is written: records may hold a hash instead.
func (f *fields) user(r record) auth.UserID {
	if !missing(r["userId"]) {
		id := f.name(r["userId"])
		if id == "" {
			f.fail("userId", "must be a text or a number")
		}
		return auth.UserID("id " + id)
	}
	email := strings.ToLower(strings.TrimSpace(f.text("email", r["email"])))
	switch {
	case email == "":
		f.fail("userId", "is missing, and so is email")
	case len(email) > maxName:
		f.fail("email", "is too long")
	}
	return auth.UserID("email " + email)
}

// maxSeconds is the end of the year 9999. Milliseconds of our days are beyond it.
const maxSeconds = 253402300799

// instant reads RFC 3339, or Unix seconds, which may have a fraction; both from 1970 to 9999.
func (f *fields) instant(raw json.RawMessage) time.Time {
	var text string
	if json.Unmarshal(raw, &text) == nil && !missing(raw) {
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.Unix() >= 0 && at.Unix() <= maxSeconds {
			return at.UTC()
		}
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil && !missing(raw) && seconds >= 0 && seconds <= maxSeconds {
		whole, part := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
	}
	f.fail("ts", "must be a time as RFC 3339 writes it, or Unix seconds, from 1970 to 9999")
	return time.Time{}
}

// location returns what the record tells of the place; nil when it has none of the fields.
func (f *fields) location(r record) *risk.Location {
	coordinates := f.coordinates(r["lat"], r["lon"])
	l := risk.Location{State: risk.Known, Country: f.country(r["country"]), Coordinates: coordinates, Network: f.network(r["asn"])}
	if len(r["country"]) == 0 && coordinates == nil {
		return nil
	}
	if l.Country == "" && coordinates == nil {
		l.State = risk.Unanswered
	}
	return &l
}

func (f *fields) country(raw json.RawMessage) string {
	code := strings.ToUpper(f.text("country", raw))
	if code != "" && !risk.IsCountry(code) {
		f.fail("country", "must be an ISO 3166 code of two letters")
	}
	return code
}

func (f *fields) coordinates(lat, lon json.RawMessage) *risk.Coordinates {
	if missing(lat) && missing(lon) {
		return nil
	}
	return &risk.Coordinates{Latitude: f.degrees("lat", lat, 90), Longitude: f.degrees("lon", lon, 180)}
}

func (f *fields) degrees(field string, raw json.RawMessage, most float64) (d float64) {
	if missing(raw) || json.Unmarshal(raw, &d) != nil || math.Abs(d) > most {
		f.fail(field, fmt.Sprintf("must be a number from -%[1]g to %[1]g; lat and lon go together", most))
	}
	return d
}

// network reads a number such as 64500 or "AS64500".
func (f *fields) network(raw json.RawMessage) risk.Network {
	if missing(raw) {
		return risk.Network{}
	}
	digits := strings.TrimPrefix(strings.ToUpper(f.name(raw)), "AS")
	number, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		f.fail("asn", "must be the number of a network")
	}
	return risk.Network{ASN: uint32(number)}
}

// reputation returns what the record tells of the address; nil when it tells nothing, no answer for null.
func (f *fields) reputation(raw json.RawMessage) *risk.Reputation {
	if len(raw) == 0 {
		return nil
	}
	if missing(raw) {
		return &risk.Reputation{State: risk.Unanswered}
	}
	class, ok := risk.ParseAddressClass(f.text("ipReputation", raw))
	if !ok {
		f.fail("ipReputation", "must be clean, hosting, proxy, tor or listed")
	}
	return &risk.Reputation{State: risk.Known, Class: class}
}

func (f *fields) device(r record) auth.DeviceInfo {
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent: f.text("userAgent", r["userAgent"]), ScreenResolution: f.text("screenResolution", r["screenResolution"]),
		Timezone: f.text("timezone", r["timezone"]), Language: f.text("language", r["language"]),
	})
	if why, ok := fault.As(err); ok && f.err == nil {
		f.err = errors.New(strings.TrimPrefix(why.Message, "deviceInfo."))
	}
	return d
}
