package registryapi

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/test/must"
)

var at = time.Date(2027, 1, 15, 8, 0, 0, 120000, time.FixedZone("", 3600))

func newRecord(t *testing.T, version string) registry.Record {
	t.Helper()
	r := registry.Record{Document: []byte(`{"description":"a <b> & ü \u003c","n":1.0}`)}
	r.Name, r.Version = parse(t, version)
	r.Status, r.StatusChangedAt, r.PublishedAt, r.UpdatedAt = registry.StatusActive, at, at, at
	return r
}

func parse(t *testing.T, text string) (registry.Name, registry.Version) {
	t.Helper()
	name, err := registry.ParseName("com.example/a")
	must.Succeed(t, err)
	version, err := registry.ParseVersion(text)
	must.Succeed(t, err)
	return name, version
}

const recordJSON = `{"server":{"description":"a <b> & ü \u003c","n":1.0},"_meta":{"io.modelcontextprotocol.registry/official":{` +
	`"status":"active","statusChangedAt":"2027-01-15T07:00:00.000120Z","publishedAt":"2027-01-15T07:00:00.000120Z","updatedAt":"2027-01-15T07:00:00.000120Z","isLatest":false}}}`

func TestData(t *testing.T) {
	t.Parallel()
	r := newRecord(t, "1.0.0")
	q, err := Encoder{}.Quarantined(registry.Quarantined{Name: r.Name, Reason: "<x>", Since: at})
	must.Succeed(t, err)
	decided := review.Review{
		ID: "r", State: review.Rejected, Kind: review.NewServer, SubmittedAt: at, DecidedAt: at, DecidedBy: "u",
		Comment: "no",
	}
	decided.Name, decided.Version, decided.Document = r.Name, r.Version, []byte(`{"a": 1}`)
	shown, err := Encoder{}.Review(review.Shown{Review: decided})
	must.Succeed(t, err)
	for _, c := range []struct {
		label string
		got   []byte
		want  string
	}{
		{"a record", Encoder{}.Record(r), recordJSON},
		{
			"two records", Encoder{}.Changed([]registry.Record{r, r}, 2),
			`{"updatedCount":2,"servers":[` + recordJSON + `,` + recordJSON + `]}`,
		},
		{"no record", Encoder{}.Changed(nil, 0), `{"updatedCount":0,"servers":[]}`},
		{"too many records", Encoder{}.Changed(nil, 9000), `{"updatedCount":9000}`},
		{
			"quarantine", q,
			`{"serverName":"com.example/a","version":null,"reason":"\u003cx\u003e","since":"2027-01-15T07:00:00.000120Z","by":"operator"}`,
		},
		{"a review", shown,
			`{"id":"r","serverName":"com.example/a","version":"1.0.0","state":"rejected","kind":"new-server","document":{"a":1},"replaces":null,` +
				`"diff":[],"checks":[],"submittedBy":"","submittedAt":"2027-01-15T07:00:00.000120Z","policy":null,"decidedBy":"u","decidedAt":"2027-01-15T07:00:00.000120Z","comment":"no","rule":null,"danger":false,"firstApproval":null,"reason":null,"source":null,"toolLists":[]}`},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s: %s, want %s", c.label, c.got, c.want)
		}
	}
	if _, err := (Encoder{}).Review(review.Shown{Review: review.Review{Document: []byte("{")}}); err == nil {
		t.Error("a document that is not JSON is written")
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	r := newRecord(t, "1.0.0")
	for _, c := range []struct {
		label string
		e     event.Event
		want  string
	}{
		{
			"a version", event.Event{
				ID: "i", Type: event.Published, Time: at, Name: r.Name, Version: r.Version, Data: Encoder{}.Record(r),
			},
			`{"id":"i","type":"published","time":"2027-01-15T07:00:00.000120Z","serverName":"com.example/a","version":"1.0.0","data":` + recordJSON + `}`,
		},
		{
			"a server without data", event.Event{ID: "i", Type: event.Released, Time: at, Name: r.Name},
			`{"id":"i","type":"released","time":"2027-01-15T07:00:00.000120Z","serverName":"com.example/a","version":null,"data":null}`,
		},
		{
			"a test", event.Event{ID: "i", Type: event.Test, Time: at},
			`{"id":"i","type":"test","time":"2027-01-15T07:00:00.000120Z","serverName":null,"version":null,"data":null}`,
		},
	} {
		if got, err := (Encoder{}).Event(c.e); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.label, got, err, c.want)
		}
	}
}

func TestEventKeepsDataByteForByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		data, err := json.Marshal(map[string]string{"text": text})
		must.Succeed(t, err)
		body, err := Encoder{}.Event(event.Event{Time: at, Data: data})
		must.Succeed(t, err)
		var read struct{ Data json.RawMessage }
		if err := json.Unmarshal(body, &read); err != nil || string(read.Data) != string(data) {
			t.Errorf("data of %s is %s, %v, want %s", body, read.Data, err, data)
		}
	})
}
