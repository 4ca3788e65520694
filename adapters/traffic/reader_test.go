package traffic

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// head is the beginning of a line, up to its descriptors.
const head = `{"time":"2026-01-01T12:00:00Z","domain":"shop","descriptors":`

// whole is a line with everything that a line can have.
const whole = `{"time":"2026-01-01T12:00:00.000000123+02:00","domain":"sh\u006fp \"ä\" <a>","descriptors":[` +
	`{"entries":[{"key":"user","value":"ada"},{"key":"","value":""}],"hitsAddend":0,"isNegativeHits":true},` +
	`{"entries":[],"isNegativeHits":false,"limit":{"requestsPerUnit":4294967295,"unit":"MINUTE"}},` +
	`{"entries":[{"value":"x","key":"y"}],"hitsAddend":4294967295,"limit":{"unit":"day"}}],"hitsAddend":2,"answer":"OVER_LIMIT"}`

func TestReader(t *testing.T) {
	zero, most := uint64(0), uint64(ratelimit.MaxHits)
	want := ratelimit.Request{Domain: `shop "ä" <a>`, Hits: 2, Descriptors: []ratelimit.Descriptor{
		{Entries: []ratelimit.Entry{{Key: "user", Value: "ada"}, {}}, Hits: &zero, GiveBack: true},
		{
			Entries: []ratelimit.Entry{}, Override: &ratelimit.Limit{
				RequestsPerUnit: ratelimit.MaxHits, Unit: ratelimit.Minute,
			},
		},
		{
			Entries: []ratelimit.Entry{{Key: "y", Value: "x"}}, Hits: &most, Override: &ratelimit.Limit{
				Unit: ratelimit.Day,
			},
		},
	}}
	spaced := " \t" + strings.NewReplacer(`":`, `" : `, `,"`, " ,\t\"").Replace(whole) + "\r"
	r := NewReader(iotest.OneByteReader(strings.NewReader(whole + "\n" + spaced + "\n" + whole)))
	for range 3 {
		at, got, err := r.Next()
		if err != nil || !at.Equal(time.Date(2026, 1, 1, 10, 0, 0, 123, time.UTC)) || !reflect.DeepEqual(*got, want) {
			t.Fatalf("%v: %+v, %v", at, got, err)
		}
	}
	for range 2 {
		if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last line: %v", err)
		}
	}
}

// malformed are lines and what is wrong with them.
func malformed() map[string]string {
	const list = `[{"entries":[{"key":"k","value":"v"}]}]`
	return map[string]string{
		"":                             "it must be an object",
		" ":                            "it must be an object",
		"null":                         "it must be an object",
		"[]":                           "it must be an object",
		"{":                            "a name must be a text",
		"{}":                           "time is missing",
		`{1:2}`:                        "a name must be a text",
		head + list + `}{`:             "there is more after the object",
		head + list:                    `a , or } is missing after "descriptors"`,
		head + list + `,}`:             "a name must be a text",
		head + list + `,"domain"}`:     `a : is missing after "domain"`,
		head + list + `,"domain":"x"}`: "domain is there twice",
		head + list + `,"user":"x"}`:   `unknown name "user"`,
		head + list + `,"` + strings.Repeat("x", 200) + `":1}`: `unknown name "` + strings.Repeat("x", 100) + `…"`,
		head + list + `,"hits_addend":1}`:                      `unknown name "hits_addend"`,
		head + list +
			`,"hitsAddend":-1}`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + list +
			`,"hitsAddend":1.5}`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + list +
			`,"hitsAddend":01}`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + list +
			`,"hitsAddend":4294967296}`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + list +
			`,"hitsAddend":"1"}`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + list +
			`,"hitsAddend":`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + list + `,"answer":"ok"}`: `answer "ok" is neither OK nor OVER_LIMIT`,
		head + `[]}`:                    "descriptors must not be empty",
		head + `{}}`:                    "descriptors must be a list",
		head + `[`:                      "descriptors[] must be an object",
		head + `[1]}`:                   "descriptors[] must be an object",
		head + `[{}]}`:                  "a descriptor has no entries",
		head + `[{"entries":[{"key":"k","value":"v"}]}`:         "a , or ] is missing in descriptors",
		head + `[{"entries":[{"key":"k"}]}]}`:                   "an entry needs key and value",
		head + `[{"entries":[{"value":"k"}]}]}`:                 "an entry needs key and value",
		head + `[{"entries":[{"key":"k","value":1}]}]}`:         "value must be a text",
		head + `[{"entries":[{"key":"k","value":"v","x":1}]}]}`: `unknown name "x" in an entry`,
		head + `[{"entries":[{"key":"k","key":"v"}]}]}`:         "key is there twice",
		head + `[{"entries":[],"entries":[]}]}`:                 "entries is there twice",
		head + `[{"entries":[],"hits":1}]}`:                     `unknown name "hits" in a descriptor`,
		head +
			`[{"entries":[],"hitsAddend":null}]}`: "hitsAddend must be a whole number from 0 to 4294967295",
		head + `[{"entries":[],"isNegativeHits":1}]}`: "isNegativeHits must be true or false",
		head + `[{"entries":[],"limit":1}]}`:          "limit must be an object",
		head + `[{"entries":[],"limit":{}}]}`:         "limit has no unit",
		head +
			`[{"entries":[],"limit":{"unit":"AGE"}}]}`: `unit "AGE" is not one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR`,
		head + `[{"entries":[],"limit":{"burst":1}}]}`: `unknown name "burst" in limit`,
		`{"time":1}`:                                                    "time must be a text",
		`{"time":"2026-01-01 12:00:00Z"}`:                               `time "2026-01-01 12:00:00Z" is not in the form of RFC 3339`,
		`{"time":"1969-12-31T23:59:59Z"}`:                               `time "1969-12-31T23:59:59Z" is not in the years 1970 to 2105`,
		`{"time":"2106-01-01T00:00:00Z"}`:                               `time "2106-01-01T00:00:00Z" is not in the years 1970 to 2105`,
		`{"time":"2026-01-01T12:00:00Z","descriptors":` + list + `}`:    "domain must not be empty",
		`{"time":"2026-01-01T12:00:00Z","domain":""}`:                   "domain must not be empty",
		`{"domain":"shop","descriptors":` + list + `}`:                  "time is missing",
		`{"domain":"shop`:                                               "domain is not closed",
		`{"domain":"shop\`:                                              "domain is not closed",
		`{"domain":"shop\x"}`:                                           "domain has an escape that JSON does not have",
		"{\"domain\":\"a\tb\"}":                                         "domain has a control character that is not escaped",
		"{\"domain\":\"\xff\"}":                                         "it is not valid UTF-8",
		"\ufeff" + head + list + "}":                                    "it must be an object",
		`{"time":"2026-01-01T12:00:00Z","domain":"shop","descriptors" `: `a : is missing after "descriptors"`,
		`{"time":"` + strings.Repeat("9", 300) + `"}`: `time "` + strings.Repeat("9", 100) +
			`…" is not in the form of RFC 3339`,
	}
}

func TestMalformedLines(t *testing.T) {
	for line, want := range malformed() {
		r := NewReader(strings.NewReader(whole + "\n" + line + "\n"))
		_, _, first := r.Next()
		_, _, err := r.Next()
		f, ok := fault.As(err)
		if first != nil || !ok || f.Kind != fault.Invalid || f.Message != "line 2: "+want {
			t.Errorf("%.100s: got %v, want line 2: %s", line, err, want)
		}
	}
}

// TestLongLines: a line has at most 1 MiB, with or without an end.
func TestLongLines(t *testing.T) {
	line := func(length int) string {
		rest := len(head + `[{"entries":[{"key":"k","value":""}]}]}`)
		return head + `[{"entries":[{"key":"k","value":"` + strings.Repeat("v", length-rest) + `"}]}]}`
	}
	for _, end := range []string{"\n", ""} {
		if _, _, err := NewReader(strings.NewReader(line(maxLine) + end)).Next(); err != nil {
			t.Errorf("the longest line with the end %q: %v", end, err)
		}
		_, _, err := NewReader(strings.NewReader(line(maxLine+1) + end)).Next()
		if err == nil || !strings.Contains(err.Error(), "line 1: it is longer than 1048576 bytes") {
			t.Errorf("a line that is too long, with the end %q: %v", end, err)
		}
	}
}

func TestReaderFails(t *testing.T) {
	away := errors.New("the disk is away")
	r := NewReader(io.MultiReader(strings.NewReader(whole+"\n"+whole[:10]), iotest.ErrReader(away)))
	_, _, first := r.Next()
	if _, _, err := r.Next(); first != nil || !errors.Is(err, away) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v, %v", first, err)
	}
}

func TestAtLine(t *testing.T) {
	r := NewReader(strings.NewReader(whole))
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if err := r.AtLine(fault.New(fault.Invalid, "it is wrong")); err.Error() != "line 1: it is wrong" {
		t.Error(err)
	}
	away := fault.New(fault.Unavailable, "counting was canceled")
	if err := r.AtLine(away); !errors.Is(err, away) {
		t.Error(err)
	}
}

// drawEntry draws what can be recorded.
func drawEntry(t *rapid.T) entry {
	e := entry{
		at: time.Unix(rapid.Int64Range(0, latest.Unix()-1).Draw(t, "seconds"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")),
		code: rapid.SampledFrom([]ratelimit.Code{ratelimit.OK, ratelimit.OverLimit}).Draw(t, "code"),
		request: ratelimit.Request{
			Domain: ratelimit.Domain(rapid.StringN(1, 10, -1).Draw(t, "domain")), Hits: rapid.Uint32().Draw(t, "hits"),
		},
	}
	for range rapid.IntRange(1, 3).Draw(t, "descriptors") {
		d := ratelimit.Descriptor{Entries: []ratelimit.Entry{}, GiveBack: rapid.Bool().Draw(t, "give back")}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			d.Entries = append(d.Entries, ratelimit.Entry{
				Key: rapid.String().Draw(t, "key"), Value: rapid.String().Draw(t, "value"),
			})
		}
		if rapid.Bool().Draw(t, "own hits") {
			hits := rapid.Uint64Range(0, ratelimit.MaxHits).Draw(t, "descriptor hits")
			d.Hits = &hits
		}
		if rapid.Bool().Draw(t, "override") {
			d.Override = &ratelimit.Limit{RequestsPerUnit: rapid.Uint32().Draw(t, "requests"), Unit: ratelimit.Week}
		}
		e.request.Descriptors = append(e.request.Descriptors, d)
	}
	return e
}

// TestRoundTrip: what is recorded is what is read.
func TestRoundTrip(t *testing.T) {
	var p parser
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		line := appendLine(nil, &e, func(s string) string { return s })
		got, err := p.parseLine(line[:len(line)-1])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !got.at.Equal(e.at) || got.code != e.code || !reflect.DeepEqual(got.request, e.request) {
			t.Fatalf("%s: got %+v, want %+v", line, got, e)
		}
	})
}

// TestEntriesAreCopies: an entry does not change when the memory of its request is used again.
func TestEntriesAreCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		got := newEntry(&e.request, e.code)
		before := appendLine(nil, &got, strconv.Quote)
		for i := range e.request.Descriptors {
			d := &e.request.Descriptors[i]
			clear(d.Entries)
			if d.Hits != nil {
				*d.Hits++
			}
			if d.Override != nil {
				d.Override.RequestsPerUnit++
			}
			*d = ratelimit.Descriptor{}
		}
		if after := appendLine(nil, &got, strconv.Quote); string(after) != string(before) {
			t.Fatalf("got %s, want %s", after, before)
		}
	})
}

// FuzzParseLine: the parser accepts only JSON, and reads what it writes.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(whole))
	for line := range malformed() {
		f.Add([]byte(line))
	}
	var p, other parser
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := p.parseLine(line)
		if err != nil {
			return
		}
		var object struct {
			Time   time.Time
			Domain string
		}
		if err := json.Unmarshal(line, &object); err != nil || !object.Time.Equal(e.at) ||
			object.Domain != string(e.request.Domain) {
			t.Fatalf("%s is %+v for encoding/json (%v), and %+v here", line, object, err, e)
		}
		if e.code == 0 {
			e.code = ratelimit.OK
		}
		again := appendLine(nil, e, func(s string) string { return s })
		got, err := other.parseLine(again[:len(again)-1])
		if err != nil || !got.at.Equal(e.at) || got.code != e.code || !reflect.DeepEqual(got.request, e.request) {
			t.Fatalf("%s became %s: %+v, %v", line, again, got, err)
		}
	})
}
