package loginhistory

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newReplayer() *replay.Replayer {
	return replay.New(replay.Config{Assess: authtest.SignIn().Assess(), StepUp: replay.FirstDevice}, signalstest.None{},
		signalstest.None{})
}

// lineWith returns a valid line with some fields added or replaced.
func lineWith(fields string) string {
	return `{"id":"1","ts":1795262400,"userId":7,"ip":"203.0.113.1","passwordCorrect":true` + fields + `}`
}

func parseLine(line string) (id string, e replay.Event, err error) {
	r, err := parseEvent([]byte(line))
	return string(r.id), r.event, err
}

func TestLabels(t *testing.T) {
	for label, want := range map[string]string{`"naive"`: "naive", `""`: "", `null`: "", `7`: "", `{"x":1}`: ""} {
		if r, err := parseEvent([]byte(lineWith(`,"label":` + label))); err != nil || r.label != want {
			t.Errorf("%s: %q, %v", label, r.label, err)
		}
	}
}

// TestHistoryOutput checks what a line has in addition if the scorer uses the history.
func TestHistoryOutput(t *testing.T) {
	for _, c := range []struct {
		history *history.Result
		want    string
	}{
		{nil, "}"},
		{
			&history.Result{Silence: history.SilentPerson},
			`,"pointsScore":15,"historyScore":null,"historySilent":"person"}`,
		},
		{
			&history.Result{
				Score: 1.23456, Parts: []history.Part{
					{Feature: history.Country, Value: "FR", Person: .0123456789, Everyone: .5, Points: 12.345},
				},
			},
			`,"pointsScore":15,"historyScore":1.23,"historyParts":[{"feature":"country","value":"FR","known":false,"person":0.012346,"everyone":0.5,` +
				`"points":12.35,"reason":"this country (FR): never before for you, 50 % of all sign-ins here: +12"}]}`,
		},
	} {
		var out bytes.Buffer
		l := Line{ID: []byte("7"), Verdict: replay.Verdict{Points: 15, RiskScore: 20.001, History: c.history}}
		must.Succeed(t, NewLineWriter(&out)(l))
		const start = `{"id":7,"riskScore":20,"trustLevel":"","factors":{"deviceFamiliarity":0,"geographicAnomaly":0,"ipReputation":0,"loginVelocity":0,"failedAttempts":0}`
		if out.String() != start+c.want+"\n" {
			t.Errorf("%s\nwant\n%s", &out, start+c.want)
		}
	}
}

func TestAllFields(t *testing.T) {
	id, e, err := parseLine(`{"id":7,"ts":"2026-11-21T13:00:00.5+01:00","userId":"u","email":"A@example.com","ip":"::ffff:203.0.113.1",
		"country":"de","asn":"AS64500","lat":52.5,"lon":-13.4,"userAgent":"a","screenResolution":"1x1","timezone":"UTC","language":"de",
		"passwordCorrect":false,"ipReputation":"tor","stepUpPassed":true,"deviceTrusted":false,"deviceTokenShown":true,"label":{"x":1}}`)
	must.Succeed(t, err)
	at := time.Date(2026, time.November, 21, 12, 0, 0, 5e8, time.UTC)
	l := e.Location
	if id != "7" || !e.At.Equal(at) || e.User != "id u" || e.Address != netip.MustParseAddr("::ffff:203.0.113.1") ||
		e.PasswordCorrect || e.StepUpPassed != replay.Yes || e.DeviceTrusted != replay.No ||
		e.DeviceTokenShown != replay.Yes ||
		*e.Reputation != (risk.Reputation{State: risk.Known, Class: risk.Tor}) || e.Device.UserAgent() != "a" {
		t.Errorf("the event is %+v", e)
	}
	if l.State != risk.Known || l.Country != "DE" || l.Network.ASN != 64500 ||
		*l.Coordinates != (risk.Coordinates{Latitude: 52.5, Longitude: -13.4}) {
		t.Errorf("the location is %+v", l)
	}
}

func TestOptionalFields(t *testing.T) {
	for fields, want := range map[string]*risk.Location{
		``:                           nil,
		`,"asn":64500`:               nil,
		`,"lat":null,"lon":null`:     nil,
		`,"country":null`:            {State: risk.Unanswered},
		`,"country":""`:              {State: risk.Unanswered},
		`,"country":"FR","asn":null`: {State: risk.Known, Country: "FR"},
	} {
		_, e, err := parseLine(lineWith(fields))
		if err != nil || (e.Location == nil) != (want == nil) || want != nil && *e.Location != *want {
			t.Errorf("%s: location %+v, error %v", fields, e.Location, err)
		}
		if e.User != "id 7" || e.Reputation != nil || e.StepUpPassed != replay.Unrecorded {
			t.Errorf("%s: %+v", fields, e)
		}
	}
	_, e, err := parseLine(
		`{"id":"1","ts":1795262400.25,"email":" Ada@Example.com","ip":"10.0.0.1","passwordCorrect":true,"ipReputation":null}`)
	if err != nil || e.User != "email ada@example.com" || e.At.Nanosecond() != 25e7 ||
		e.Reputation.State != risk.Unanswered {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestMalformedLines checks that errors name the line and the field.
func TestMalformedLines(t *testing.T) {
	for line, names := range map[string]string{
		`[]`:                   "not a JSON object",
		`{"id":`:               "not a JSON object",
		`{} {}`:                "not a JSON object",
		`null`:                 "id ",
		lineWith(`,"id":null`): "id ",
		lineWith(`,"id":{}`):   "id ",
		lineWith(`,"id":"` + longText(300) + `"`):       "id ",
		lineWith(`,"ts":"yesterday"`):                   "ts ",
		lineWith(`,"ts":1795262400000`):                 "ts ",
		lineWith(`,"ts":-1`):                            "ts ",
		lineWith(`,"ts":null`):                          "ts ",
		lineWith(`,"ts":"0000-01-01T00:00:00Z"`):        "ts ",
		lineWith(`,"ts":"1969-12-31T23:59:59Z"`):        "ts ",
		lineWith(`,"ts":"9999-12-31T23:59:59-01:00"`):   "ts ",
		lineWith(`,"userId":[]`):                        "userId ",
		lineWith(`,"userId":null`):                      "userId ",
		lineWith(`,"userId":null,"email":7`):            "email ",
		lineWith(`,"ip":"203.0.113"`):                   "ip ",
		lineWith(`,"ip":null`):                          "ip ",
		lineWith(`,"country":"Germany"`):                "country ",
		lineWith(`,"country":49`):                       "country ",
		lineWith(`,"asn":-1`):                           "asn ",
		lineWith(`,"lat":1`):                            "lon ",
		lineWith(`,"lat":91,"lon":0`):                   "lat ",
		lineWith(`,"lat":0,"lon":"x"`):                  "lon ",
		lineWith(`,"userAgent":7`):                      "userAgent ",
		lineWith(`,"language":"` + longText(600) + `"`): "language ",
		lineWith(`,"passwordCorrect":"yes"`):            "passwordCorrect ",
		lineWith(`,"passwordCorrect":null`):             "passwordCorrect ",
		lineWith(`,"ipReputation":"spam"`):              "ipReputation ",
		lineWith(`,"stepUpPassed":1`):                   "stepUpPassed ",
	} {
		var out bytes.Buffer
		err := ReplayLines(context.Background(), strings.NewReader(lineWith("")+"\n\n"+line+"\n"), newReplayer(),
			NewLineWriter(&out))
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || !strings.Contains(err.Error(), names) {
			t.Errorf("%.80s: %v, want line 3 and %q", line, err, names)
		}
		if strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%.80s: %q was written, want the verdict on line 1", line, &out)
		}
	}
}

// TestNamesInAnotherCase checks that field names are case-sensitive, so that a name in another case
// is an unknown field.
func TestNamesInAnotherCase(t *testing.T) {
	_, e, err := parseLine(lineWith(`,"TS":"yesterday","PasswordCorrect":false,"COUNTRY":"Germany","ıp":7`))
	if err != nil || e.Location != nil || !e.PasswordCorrect || e.At.Unix() != 1795262400 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, _, err := parseLine(strings.Replace(lineWith(""), `"id"`, `"ID"`, 1)); err == nil ||
		!strings.HasPrefix(err.Error(), "id ") {
		t.Errorf("%v, want an error about the missing id", err)
	}
}

func longText(n int) string { return strings.Repeat("x", n) }

func TestLimits(t *testing.T) {
	big := lineWith(`,"label":"` + longText(maxLine) + `"`)
	err := ReplayLines(context.Background(), strings.NewReader(lineWith("")+"\n"+big), newReplayer(),
		NewLineWriter(io.Discard))
	if err == nil || !strings.HasPrefix(err.Error(), "line 2 is longer") {
		t.Errorf("ReplayLines of a line that is too long: %v", err)
	}
	err = ReplayLines(context.Background(), strings.NewReader(lineWith("")+"\n"+lineWith(`,"ts":1795262399`)),
		newReplayer(), NewLineWriter(io.Discard))
	if err == nil || err.Error() != "line 2: ts is before that of the event before, 2026-11-21T12:00:00Z" {
		t.Errorf("ReplayLines of lines out of order: %v", err)
	}
	full := errors.New("disk full")
	if err := ReplayLines(context.Background(), strings.NewReader(lineWith("")), newReplayer(), func(Line) error {
		return full
	}); !errors.Is(err, full) {
		t.Errorf("ReplayLines with a failing writer: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := ReplayLines(ctx, strings.NewReader(lineWith("")), newReplayer(),
		NewLineWriter(io.Discard)); !errors.Is(err, context.Canceled) {
		t.Errorf("ReplayLines with a cancelled context: %v", err)
	}
}

// TestGolden replays the events that docs/risk-tuning.md shows.
func TestGolden(t *testing.T) {
	in, err := os.Open("testdata/events.jsonl")
	must.Succeed(t, err)
	defer in.Close()
	want, err := os.ReadFile("testdata/verdicts.jsonl")
	must.Succeed(t, err)
	var out bytes.Buffer
	must.Succeed(t, ReplayLines(context.Background(), in, newReplayer(), NewLineWriter(&out)))
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the verdicts are\n%swant\n%s", &out, want)
	}
}

// TestByteOrderMark checks that the mark is ignored at the start of the file, and only there.
func TestByteOrderMark(t *testing.T) {
	for text, good := range map[string]bool{"\ufeff" + lineWith(""): true, "\n\ufeff" + lineWith(""): false} {
		err := ReplayLines(context.Background(), strings.NewReader(text), newReplayer(), func(Line) error {
			return nil
		})
		if (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse checks that every line is refused with an error, or is an event that can be assessed.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, line string) {
		id, e, err := parseLine(line)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("the error has no text")
			}
			return
		}
		if len(id) == 0 || e.User == "" || !e.Address.IsValid() || e.At.Year() > 9999 {
			t.Fatalf("%q is parsed as %+v", line, e)
		}
		if l := e.Location; l != nil && l.Coordinates != nil && l.Coordinates.DistanceKM(risk.Coordinates{}) > 20_100 {
			t.Fatalf("%q has impossible coordinates: %+v", line, *l.Coordinates)
		}
		v, err := newReplayer().Next(context.Background(), e)
		if err != nil || v.Score < 0 || v.Score > risk.MaxScore || v.Level > auth.Unverified {
			t.Fatalf("%q is assessed as %+v, %v", line, v, err)
		}
	})
}
