package announce_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

type recorder = *announce.Recorder

func TestTypeOf(t *testing.T) {
	t.Parallel()
	for kind, want := range map[review.Kind]event.Type{
		review.NewServer: event.Published, review.NewVersion: event.Published, review.Replacement: event.Replaced,
	} {
		if got := announce.TypeOf(kind); got != want {
			t.Errorf("a document of the kind %s is reported as %s, want %s", kind, got, want)
		}
	}
}

// TestRecorded checks the type, the server, the version and the data of the event that each method
// records (contract C-50 and C-52).
func TestRecorded(t *testing.T) {
	t.Parallel()
	ctx, name, v := t.Context(), newName(t, "com.example/a"), newVersion(t, "1.0.0")
	first, second := newRecord(t, "com.example/a", "1.0.0"), newRecord(t, "com.example/a", "2.0.0")
	decided := review.Review{
		Name: name, Version: v, State: review.Rejected, Kind: review.NewVersion, Document: []byte("{}"),
	}
	for _, c := range []struct {
		what   string
		record func(recorder) error
		want   []string
	}{
		{"no versions", func(r recorder) error { return r.RecordVersions(ctx, event.Published) }, nil},
		{"versions", func(r recorder) error { return r.RecordVersions(ctx, event.Published, second, first) },
			[]string{"published com.example/a@2.0.0 active {}", "published com.example/a@1.0.0 active {}"}},
		{"a replacement", func(r recorder) error { return r.RecordVersions(ctx, event.Replaced, first) },
			[]string{"replaced com.example/a@1.0.0 active {}"}},
		{"a server", func(r recorder) error { return r.RecordServer(ctx, name, []registry.Record{first, second}, 2) },
			[]string{"status com.example/a@ 2 versions, 2 documents"}},
		{"a large server", func(r recorder) error { return r.RecordServer(ctx, name, nil, 9000) },
			[]string{"status com.example/a@ 9000 versions, 0 documents"}},
		{"a review", func(r recorder) error { return r.RecordReview(ctx, event.Rejected, decided) },
			[]string{"rejected com.example/a@1.0.0 rejected"}},
		{"quarantine", func(r recorder) error {
			return r.RecordQuarantined(ctx, registry.Quarantined{Name: name, Version: v, Reason: "it sends mail"})
		}, []string{"quarantined com.example/a@1.0.0 it sends mail"}},
		{"a release of a version", func(r recorder) error { return r.RecordReleased(ctx, name, v) },
			[]string{"released com.example/a@1.0.0 "}},
		{"a release of a server", func(r recorder) error { return r.RecordReleased(ctx, name, registry.Version{}) },
			[]string{"released com.example/a@ "}},
	} {
		fx := newFixture(t)
		eventdatatest.AddWebhook(t, fx.webhooks)
		if err := c.record(fx.Recorder); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		got := eventdatatest.Take(t, fx.deliveries)
		same := func(got, want string) bool { return strings.HasPrefix(got, want+" ") }
		if !slices.EqualFunc(got, c.want, same) {
			t.Errorf("%s: the events are %q, want %q", c.what, got, c.want)
		}
	}
}

// TestRecordedForWhoWants checks that an event is stored once for each webhook that wants it, with
// one body and one ID, and that its data is not written otherwise.
func TestRecordedForWhoWants(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	one, other := newRecord(t, "com.example/a", "1.0.0"), newRecord(t, "com.other/b", "1.0.0")
	must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, one))
	fx.addWebhook("status", draft("", "status"))
	fx.addWebhook("other", draft("com.other/*", "published"))
	must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, one))
	if fx.encoder.written != 0 {
		t.Errorf("the data of an event that no webhook wants was written %d times", fx.encoder.written)
	}
	fx.addWebhook("all", draft("*", "published", "status"))
	must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, one))
	must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, other))
	if fx.encoder.written != 2 {
		t.Errorf("the data of two events was written %d times", fx.encoder.written)
	}
	if got := fx.due("status"); len(got) != 0 {
		t.Errorf("the webhook for status gets %+v", got)
	}
	all, some := fx.due("all"), fx.due("other")
	if len(all) != 2 || len(some) != 1 || all[0].Name != one.Name || all[1].Name != other.Name ||
		some[0].Name != other.Name {
		t.Fatalf("the webhook for all servers gets %+v, the one for others %+v", all, some)
	}
	if all[1].Event != some[0].Event || string(all[1].Body) != string(some[0].Body) || all[0].Event == all[1].Event {
		t.Errorf("two webhooks get %+v and %+v of one event, and %+v of another", all[1], some[0], all[0])
	}
	d := all[0]
	want := "published com.example/a@1.0.0 active {} " + string(d.Event) + " " + "2026-11-23T11:00:00.123456Z"
	if string(d.Body) != want || d.State != event.Pending || d.Type != event.Published || d.Version != one.Version ||
		!d.Since.Equal(kept) || !d.NextAt.Equal(kept) {
		t.Errorf("the delivery is %+v with the body %s, want %s", d, d.Body, want)
	}
}

// failingWebhooks fails to list.
type failingWebhooks struct{ registrystore.Webhooks }

func (failingWebhooks) List(context.Context) ([]event.Webhook, error) { return nil, errAway }

// failingDeliveries fails to add.
type failingDeliveries struct{ registrystore.Deliveries }

func (failingDeliveries) Add(context.Context, []event.Delivery) error { return errAway }

// TestRecordFails checks that a failure of a dependency is returned, so that the change is not
// stored without its event (contract C-54).
func TestRecordFails(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ports := announce.Ports{
		Webhooks: failingWebhooks{fx.webhooks}, Deliveries: fx.deliveries, Encoder: fx.encoder, Clock: fx.clock,
		Entropy: &secretstest.Entropy{},
	}
	record := func(what string, want error) {
		t.Helper()
		one := newRecord(t, "com.example/a", "1.0.0")
		err := announce.New(ports).RecordVersions(t.Context(), event.Published, one)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	record("webhooks that cannot be listed", errAway)
	ports.Webhooks, ports.Deliveries = fx.webhooks, failingDeliveries{fx.deliveries}
	record("without webhooks", nil)
	eventdatatest.AddWebhook(t, fx.webhooks)
	record("deliveries that cannot be added", errAway)
	ports.Deliveries = fx.deliveries
	fx.encoder.fails = errors.New("no JSON")
	record("an event that cannot be written", fx.encoder.fails)
	if got := eventdatatest.Take(t, fx.deliveries); len(got) != 0 {
		t.Errorf("after failures, the events are %q", got)
	}
}

// TestRecordedInTheTransaction checks that a transaction that fails leaves no event.
func TestRecordedInTheTransaction(t *testing.T) {
	t.Parallel()
	db := fakedb.New()
	webhooks, deliveries := fakedb.NewWebhooks(db), fakedb.NewDeliveries(db)
	fx := newFixture(t)
	recorder := announce.New(announce.Ports{
		Webhooks: webhooks, Deliveries: deliveries, Encoder: fx.encoder, Clock: fx.clock,
		Entropy: &secretstest.Entropy{},
	})
	eventdatatest.AddWebhook(t, webhooks)
	err := db.Atomically(t.Context(), func(ctx context.Context) error {
		if err := recorder.RecordVersions(ctx, event.Published, newRecord(t, "com.example/a", "1.0.0")); err != nil {
			return err
		}
		return errAway
	})
	if !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	if got := eventdatatest.Take(t, deliveries); len(got) != 0 {
		t.Errorf("the events of a change that was not stored are %q", got)
	}
}

// TestPurges checks what caches must drop after each change, and when: what was put in quarantine at
// once, before everything else, and everything again when each instance has heard of it.
func TestPurges(t *testing.T) {
	t.Parallel()
	ctx, name := t.Context(), newName(t, "com.example/a")
	change := "[" + string(event.ServerKey("com.example/a")) + " servers allowlists]"
	for _, c := range []struct {
		what   string
		record func(recorder) error
		keys   string
		waits  []time.Duration
	}{
		{"two versions", func(r recorder) error {
			return r.RecordVersions(ctx, event.Published, newRecord(t, "com.example/a", "1.0.0"), newRecord(t, "com.example/a", "2.0.0"))
		}, change, []time.Duration{event.PurgeAgain}},
		{"a server", func(r recorder) error { return r.RecordServer(ctx, name, nil, 9000) },
			change, []time.Duration{event.PurgeAgain}},
		{"a review", func(r recorder) error {
			return r.RecordReview(ctx, event.Rejected, review.Review{Name: name, Kind: review.NewVersion, Document: []byte("{}")})
		}, "", nil},
		{"quarantine", func(r recorder) error { return r.RecordQuarantined(ctx, registry.Quarantined{Name: name}) },
			change, []time.Duration{0, event.PurgeAgain}},
		{"release", func(r recorder) error { return r.RecordReleased(ctx, name, registry.Version{}) },
			change, []time.Duration{event.PurgeAgain}},
		{"a view", func(r recorder) error { return r.RecordView(ctx, "team") },
			"[view-team]", []time.Duration{event.PurgeAgain}},
	} {
		fx := newFixture(t)
		fx.addWebhook("cache", draft("com.example/*", "purge"))
		fx.addWebhook("other", draft("com.other/*", "purge"))
		must.Succeed(t, c.record(fx.Recorder))
		var waits []time.Duration
		for _, d := range fx.dueAt("cache", epoch.Add(time.Hour)) {
			waits = append(waits, d.NextAt.Sub(d.Since))
			if d.Type != event.Purge || d.Urgent != (len(c.waits) > 1) || !strings.Contains(string(d.Body), " "+c.keys+" ") {
				t.Errorf("%s: %+v %s, want %s", c.what, d, d.Body, c.keys)
			}
		}
		if !slices.Equal(waits, c.waits) {
			t.Errorf("%s: sent after %v, want %v", c.what, waits, c.waits)
		}
		if others := len(fx.dueAt("other", epoch.Add(time.Hour))); (others > 0) != (c.what == "a view") {
			t.Errorf("%s: %d deliveries to a webhook for other servers", c.what, others)
		}
	}
}
