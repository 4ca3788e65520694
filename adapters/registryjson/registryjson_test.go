package registryjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/must"
)

// readEntries reads a source to its end and returns one line for each entry.
func readEntries(t *testing.T, s *Source) []string {
	t.Helper()
	var lines []string
	for {
		e, err := s.Next(t.Context())
		switch {
		case errors.Is(err, io.EOF):
			return lines
		case err != nil:
			return append(lines, "error "+err.Error())
		case e.Broken != nil:
			lines = append(lines, e.Origin+" broken: "+e.Broken.Error())
		case e.Unreadable != nil:
			lines = append(lines, e.Origin+" unreadable: "+e.Unreadable.Error())
		default:
			lines = append(lines, e.Origin+" "+string(e.Document))
		}
	}
}

func openText(t *testing.T, text string) *Source {
	t.Helper()
	s, err := Open(Stdin, iotest.HalfReader(strings.NewReader(text)))
	must.Succeed(t, err)
	return s
}

func readText(t *testing.T, text string) []string {
	t.Helper()
	lines := readEntries(t, openText(t, text))
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "standard input")
	}
	return lines
}

func TestRecordForms(t *testing.T) {
	t.Parallel()
	large := `"` + strings.Repeat("x", maxRecord) + `"`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a document": {
			` {"name" : "a", "n": [1, {"}": "\"]"}], "t":true } `, []string{
				` {"name":"a","n":[1, {"}": "\"]"}],"t":true}`,
			},
		},
		"an empty object": {`{}`, []string{` {}`}},
		"a record":        {`{"server":{"name":"a"},"_meta":{}}`, []string{` {"name":"a"}`}},
		"a list": {
			`{"metadata":{"count":2},"servers":[{"server":{"a":1}}, {"server":{"b":2}}],"more":[1]}`, []string{
				`, record 1 {"a":1}`, `, record 2 {"b":2}`,
			},
		},
		"an empty list":        {`{"servers":[]}`, nil},
		"a byte order mark":    {"\ufeff" + `{"servers":[{"server":{"a":1}}]}`, []string{`, record 1 {"a":1}`}},
		"documents in a row":   {`[{"a":1},{"b":2}]`, []string{`, record 1 {"a":1}`, `, record 2 {"b":2}`}},
		"servers is an object": {`{"servers":{"a":1}}`, []string{` {"servers":{"a":1}}`}},
		"records that are not objects": {`{"servers":[1,{"server":{"a":1}},{"a" 2},null,{"c":3}]}`, []string{
			`, record 1 unreadable: the record is not a JSON object: it is a JSON number`,
			`, record 2 {"a":1}`,
			`, record 3 unreadable: the record is not a JSON object: invalid character '2' after object key`,
			`, record 4 unreadable: the record is not a JSON object: it is null`,
			`, record 5 {"c":3}`,
		}},
		"a bad status": {`{"server":{},"_meta":{"` + officialKey + `":{"publishedAt":"yesterday"}}}`, []string{
			` unreadable: _meta of the record has an invalid status or time: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`}},
		"bad _meta": {
			`{"server":{},"_meta":[]}`, []string{
				` unreadable: _meta of the record is not a JSON object: it is a JSON array`,
			},
		},
		"one record that is too large": {
			`[{"a":1},{"b":` + large + `},{"c":3}]`, []string{
				`, record 1 {"a":1}`, `, record 2 unreadable: ` + errTooLarge.Error(), `, record 3 {"c":3}`,
			},
		},
		"a single record that is too large": {
			`{"a":1,"b":` + large + `,"c":3}`, []string{` unreadable: ` + errTooLarge.Error()},
		},
		"metadata that is too large": {
			`{"servers":[{"a":1}],"metadata":` + large + `}`, []string{`, record 1 {"a":1}`},
		},
		"only white space": {` `, []string{` broken: is empty`}},
		"a number": {
			`7`, []string{` broken: is not a JSON object or array: it begins with '7'`},
		},
		"a missing comma": {
			`[{"a":1} {"b":2}]`, []string{`, record 1 {"a":1}`, ` broken: is not JSON: found '{' instead of ','`},
		},
		"an extra comma in an array": {
			`[{"a":1},]`, []string{`, record 1 {"a":1}`, ` broken: is not JSON: a value is missing before ']'`},
		},
		"an extra comma in an object": {
			`{"a":1,}`, []string{` broken: is not JSON: a value is missing before '}'`},
		},
		"a missing colon": {`{"a" 1}`, []string{` broken: is not JSON: found '1' instead of ':'`}},
		"more data after the JSON": {
			`{"a":1}{"b":2}`, []string{` {"a":1}`, ` broken: has more data after its JSON, beginning with '{'`},
		},
		"cut off inside a record": {
			`{"servers":[{"a":1},{"b":"`, []string{`, record 1 {"a":1}`, ` broken: ends in the middle of its JSON`},
		},
		"cut off after a record": {
			`{"servers":[{"a":1}`, []string{`, record 1 {"a":1}`, ` broken: ends in the middle of its JSON`},
		},
		"cut off inside an object": {`{"a":1`, []string{` broken: ends in the middle of its JSON`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := readText(t, c.text); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRecordedMeta(t *testing.T) {
	t.Parallel()
	s, _ := Open(Stdin,
		strings.NewReader(`{"server":{"a":1},"_meta":{"other":{},"`+officialKey+
			`":{"status":"deprecated","statusMessage":"use 2",
		"publishedAt":"2026-01-02T03:04:05.123456+01:00","updatedAt":"2026-01-02T03:04:05Z","statusChangedAt":null,"isLatest":true,"id":7}}}`))
	e, err := s.Next(t.Context())
	want := recordsource.Recorded{
		Status: "deprecated", StatusMessage: "use 2",
		PublishedAt: time.Date(2026, 1, 2, 2, 4, 5, 123456000, time.UTC),
		UpdatedAt:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if err != nil || e.Unreadable != nil || !reflect.DeepEqual(e.Recorded, want) {
		t.Errorf("recorded is %+v, %v, want %+v", e.Recorded, errors.Join(err, e.Unreadable), want)
	}
}

func TestReadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Open(dir, nil); err == nil {
		t.Error("Open of an empty folder returned no error")
	}
	for name, text := range map[string]string{
		"b.json": `{"b":1}`, "a/z.JSON": `[{"z":1}]`, "c.json": `{`, "d.json": `{"d":1}`, "notes.txt": "x",
	} {
		path := filepath.Join(dir, name)
		must.Succeed(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)))
	}
	link := filepath.Join(t.TempDir(), "link")
	must.Succeed(t, os.Symlink(dir, link))
	s, err := Open(link, nil)
	must.Succeed(t, err)
	want := []string{
		link + `/a/z.JSON, record 1 {"z":1}`, link + `/b.json {"b":1}`,
		link + `/c.json broken: ends in the middle of its JSON`, link + `/d.json {"d":1}`,
	}
	if got := readEntries(t, s); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if read, size := s.Progress(); read != size || size != 24 {
		t.Errorf("Progress = %d, %d", read, size)
	}
	if _, err := Open("ftp://registry.example.com/servers", nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("Open of an ftp URL returned %v", err)
	}
	if _, err := Open(filepath.Join(dir, "missing.json"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of a missing file returned %v", err)
	}
}

func TestWriteExport(t *testing.T) {
	t.Parallel()
	var empty bytes.Buffer
	if err := NewWriter(&empty).Close(); err != nil || empty.String() != "{\"servers\":[\n]}\n" {
		t.Errorf("an empty export is %q, error %v", &empty, err)
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	for _, r := range []registry.Record{
		{
			Release: registry.Release{
				Status: registry.StatusActive, PublishedAt: at, UpdatedAt: at, StatusChangedAt: at, Latest: true,
			}, Document: []byte(`{"a":"<é\u2028"}`),
		},
		{
			Release: registry.Release{
				Status: registry.StatusDeleted, StatusMessage: "<gone> \" é", PublishedAt: at, UpdatedAt: at,
				StatusChangedAt: at,
			}, Document: []byte(`{"b":1}`),
		},
	} {
		must.Succeed(t, w.Write(recordsource.Exported{Record: r}))
	}
	must.Succeed(t, w.Close())
	const times = `"statusChangedAt":"2026-01-02T02:04:05.000006Z","publishedAt":"2026-01-02T02:04:05.000006Z","updatedAt":"2026-01-02T02:04:05.000006Z"`
	want := "{\"servers\":[\n" +
		`{"server":{"a":"<é\u2028"},"_meta":{"` + officialKey + `":{"status":"active",` + times +
		`,"isLatest":true}}}` + ",\n" +
		`{"server":{"b":1},"_meta":{"` + officialKey + `":{"status":"deleted","statusMessage":"<gone> \" é",` + times +
		`,"isLatest":false}}}` + "\n]}\n"
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", &out, want)
	}
	if got := readText(t, out.String()); !slices.Equal(got, []string{
		`, record 1 {"a":"<é\u2028"}`, `, record 2 {"b":1}`,
	}) {
		t.Errorf("the written export is read as %q", got)
	}
	if err := w.Write(recordsource.Exported{}); err == nil {
		if err = NewWriter(failingWriter{}).Close(); err == nil {
			t.Error("Close returned no error after a failed write")
		}
	}
}

// TestQuarantineInExport checks that the quarantine of a version that is written is read again.
func TestQuarantineInExport(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	version, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	var out bytes.Buffer
	w := NewWriter(&out)
	err = w.Write(recordsource.Exported{
		Record: registry.Record{Release: registry.Release{Status: registry.StatusDeleted}, Document: []byte(`{}`)},
		Held: registry.Held{
			Entries: []registry.Quarantined{
				{Reason: "all", Since: at}, {Version: version, Reason: "one", Since: at, By: "ada"},
			},
			Prior: registry.PriorStatus{
				Version: version, Status: registry.StatusDeprecated, Message: "use 2", ChangedAt: at,
			},
		},
	})
	must.Succeed(t, errors.Join(err, w.Close()))
	s, err := openText(t, out.String()).Next(t.Context())
	want := &recordsource.Quarantine{
		Entries: []recordsource.QuarantineEntry{
			{Server: true, Reason: "all", Since: at}, {Reason: "one", Since: at, By: "ada"},
		},
		Status: "deprecated", StatusMessage: "use 2", StatusChangedAt: at,
	}
	if err != nil || s.Unreadable != nil || !reflect.DeepEqual(s.Recorded.Quarantine, want) {
		t.Errorf("read %+v, %v, %v from %s; want %+v", s.Recorded.Quarantine, err, s.Unreadable, &out, want)
	}
	for _, bad := range []string{`[]`, `{"entries":{}}`, `{"entries":[{"since":"yesterday"}]}`} {
		text := `{"servers":[{"server":{},"_meta":{"dev.tollgate/quarantine":` + bad + `}}]}`
		if e, err := openText(t, text).Next(t.Context()); err != nil || e.Unreadable == nil {
			t.Errorf("%s is read as %+v, %v", bad, e, err)
		}
	}
}

// TestOwnerInExport checks that the owner of a server that is written is read again.
func TestOwnerInExport(t *testing.T) {
	t.Parallel()
	for _, o := range []registry.Owner{{}, {Team: "<Weather>"}, {Team: "Weather", Contact: "weather@example.com"}} {
		var out bytes.Buffer
		w := NewWriter(&out)
		err := w.Write(recordsource.Exported{Record: registry.Record{Document: []byte(`{}`)}, Owner: o})
		must.Succeed(t, errors.Join(err, w.Close()))
		e, err := openText(t, out.String()).Next(t.Context())
		if err != nil || e.Unreadable != nil || e.Recorded.Owner != o.Team || e.Recorded.Contact != o.Contact ||
			strings.Contains(out.String(), "dev.tollgate/owner") != (o.Team != "") {
			t.Errorf("%+v is read as %+v, %v from %s", o, e, err, &out)
		}
	}
	for _, bad := range []string{`[]`, `"Weather"`, `{"owner":7}`} {
		if e, err := openText(t, `{"servers":[{"server":{},"_meta":{"dev.tollgate/owner":`+bad+`}}]}`).Next(t.Context()); err != nil || e.Unreadable == nil {
			t.Errorf("%s is read as %+v, %v", bad, e, err)
		}
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// FuzzRecords checks that every text ends without a panic or endless loop, and that an array of
// JSON gives as many records as it has elements.
func FuzzRecords(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		in := newRecordReader(bytes.NewReader(text))
		var got [][]byte
		for {
			record, err := in.nextRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if errors.Is(err, errTooLarge) {
				continue
			}
			if err != nil {
				if json.Valid(text) && len(text) > 0 && slices.Contains([]byte("{["), bytes.TrimSpace(text)[0]) {
					t.Fatalf("%q: %v", text, err)
				}
				return
			}
			got = append(got, record)
		}
		var list []json.RawMessage
		if json.Unmarshal(text, &list) == nil && len(list) != len(got) {
			t.Fatalf("%q has %d records, want %d", text, len(got), len(list))
		}
	})
}

// TestToolsInExport checks that the tool lists of a version are read again from a file, however large the record is
// with them, and from no other registry.
func TestToolsInExport(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 60<<10)
	text := `{"tools":[`
	for i := range 15 {
		text += fmt.Sprintf(`{"name":"t%d","description":%q},`, i, large)
	}
	list, err := tools.Parse([]byte(text + `{"name":"last"}]}`))
	must.Succeed(t, err)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stored := tools.Stored{Source: tools.Asked, State: tools.Approved, At: at, By: tools.Sender{Key: "tools"}, List: list}
	one := recordsource.Exported{Record: registry.Record{Document: []byte(`{"a":"` + strings.Repeat("y", 500<<10) + `"}`)}, Tools: []tools.Shown{
		{Place: tools.Place{Remote: "https://a.example"}, Stored: stored}, {Place: tools.Place{Package: 1}, Stored: stored},
	}}
	var out bytes.Buffer
	w := NewWriter(&out)
	must.Succeed(t, w.Write(one))
	must.Succeed(t, w.Close())
	e, err := openText(t, out.String()).Next(t.Context())
	if err != nil || e.Unreadable != nil || len(e.Recorded.Tools) != 2 {
		t.Fatalf("read %d lists, %v, %v", len(e.Recorded.Tools), err, e.Unreadable)
	}
	want := recordsource.ToolList{
		Remote: "https://a.example", Source: "asked", State: "approved", At: at, By: "tools", Content: list.Canonical(),
	}
	if got := e.Recorded.Tools[0]; !reflect.DeepEqual(got, want) || e.Recorded.Tools[1].Package != 1 {
		t.Errorf("the list is %+v", got)
	}
	e, err = openText(t, `{"servers":[{"server":{"a":"`+strings.Repeat("y", maxRecord)+`"}}]}`).Next(t.Context())
	if err != nil || !errors.Is(e.Unreadable, errTooLarge) {
		t.Errorf("a large document: %v, %v", err, e.Unreadable)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"servers":[{"server":{},"_meta":{"dev.tollgate/tools":[{"remote":"https://a.example","state":"approved","source":"asked","list":{}}]}}]}`)
	}))
	defer other.Close()
	s, err := Open(other.URL, nil)
	must.Succeed(t, err)
	if e, err = s.Next(t.Context()); err != nil || e.Unreadable != nil || len(e.Recorded.Tools) > 0 {
		t.Errorf("of another registry: %+v, %v", e, err)
	}
	for _, bad := range []string{`{}`, `[{"package":"x"}]`} {
		text := `{"servers":[{"server":{},"_meta":{"dev.tollgate/tools":` + bad + `}}]}`
		if e, err := openText(t, text).Next(t.Context()); err != nil || e.Unreadable == nil {
			t.Errorf("%s is read as %+v, %v", bad, e, err)
		}
	}
}
