package mirroring_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestSyncFollowsTheOtherRegistry(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{Exclude: []string{"com.example/x*"}})
	fx.upstream.entries = append(active("com.example/a", "com.example/b", "com.example/x1", "org.example/c"),
		entry("com.example/b", "2.0.0", registry.StatusDeprecated, ""))
	s := fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/b@1.0.0",
		"added com.example/b@2.0.0", "added org.example/c@1.0.0")
	if !s.Full || s.Servers != 3 || s.Records != 5 {
		t.Errorf("the summary is %+v", s)
	}
	fx.wantListed("com.example/a@1.0.0 active", "com.example/b@1.0.0 active", "com.example/b@2.0.0 deprecated",
		"org.example/c@1.0.0 active")
	fx.wantEvents("published com.example/a@1.0.0", "published com.example/b@1.0.0", "published org.example/c@1.0.0",
		"published com.example/b@2.0.0")
	if state := fx.state(); state.Health() != mirror.OK || state.Servers != 3 ||
		!state.LastSuccess.Equal(epoch.Add(time.Minute)) || !state.NextAt.Equal(epoch.Add(61*time.Minute)) {
		t.Errorf("the state is %+v", state)
	}

	fx.upstream.changed = []recordsource.Entry{
		entry("com.example/a", "1.0.0", registry.StatusActive, " and warnings"),
		entry("com.example/b", "1.0.0", registry.StatusDeleted, ""),
		entry("com.example/b", "2.0.0", registry.StatusDeprecated, ""),
		entry("com.example/d", "1.0.0", registry.StatusActive, ""),
	}
	s = fx.wantSync(mirroring.Options{}, "replaced com.example/a@1.0.0", "status com.example/b@1.0.0: deleted",
		"added com.example/d@1.0.0")
	if since := fx.upstream.reads[1]; s.Full || s.Servers != 4 || !since.Equal(epoch.Add(time.Minute-5*time.Minute)) {
		t.Errorf("the second read asked for changes since %s: %+v", since, s)
	}
	fx.wantListed("com.example/a@1.0.0 active", "com.example/b@1.0.0 deleted", "com.example/b@2.0.0 deprecated",
		"com.example/d@1.0.0 active", "org.example/c@1.0.0 active")
	fx.wantEvents("published com.example/d@1.0.0", "replaced com.example/a@1.0.0", "status com.example/b@1.0.0")
	fx.wantSync(mirroring.Options{})

	fx.upstream.entries = append(active("com.example/a", "org.example/c"),
		entry("com.example/b", "2.0.0", registry.StatusActive, ""))
	fx.clock.Advance(24 * time.Hour)
	s = fx.wantSync(mirroring.Options{}, "replaced com.example/a@1.0.0", "status com.example/b@2.0.0: active",
		"status com.example/d@1.0.0: deleted")
	if !s.Full || s.Servers != 3 {
		t.Errorf("the comparison after a day: %+v", s)
	}
	fx.wantListed("com.example/a@1.0.0 active", "com.example/b@1.0.0 deleted", "com.example/b@2.0.0 active",
		"com.example/d@1.0.0 deleted", "org.example/c@1.0.0 active")
	fx.wantSync(mirroring.Options{Full: true})
}

func TestOriginOfVersions(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{URL: "https://registry.example.com/registries/x/t/tgview_secret"})
	fx.upstream.entries = active("com.example/a")
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0")
	found, err := fx.servers.List(t.Context(), registrystore.Query{Limit: 1})
	want := registry.Origin{
		Mirror: "corp", URL: "https://registry.example.com/registries/x/t/***", FetchedAt: epoch.Add(time.Minute),
	}
	if err != nil || found.Records[0].Origin != want {
		t.Errorf("the origin is %+v, %v, want %+v", found.Records[0].Origin, err, want)
	}
	if at := found.Records[0].PublishedAt; !at.Equal(epoch.AddDate(-1, 0, 5)) {
		t.Errorf("published at %s", at)
	}
}

// TestTimesOfStatuses checks that statusChangedAt is that of the other registry, also at changes
// and corrections, and that a version that is gone there changed when that was seen (contract
// C-61).
func TestTimesOfStatuses(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	at := func(e recordsource.Entry, days int) recordsource.Entry {
		e.Recorded.StatusChangedAt = epoch.AddDate(0, -1, days)
		return e
	}
	want := func(times ...time.Time) {
		t.Helper()
		found, err := fx.servers.List(t.Context(), registrystore.Query{Limit: 9, Deleted: true})
		if err != nil || len(found.Records) != len(times) {
			t.Fatal(found, err)
		}
		for i, r := range found.Records {
			if !r.StatusChangedAt.Equal(times[i]) {
				t.Errorf("%s changed its status at %s, want %s", r.Name, r.StatusChangedAt, times[i])
			}
		}
	}
	old := entry("com.example/a", "1.0.0", registry.StatusDeprecated, "")
	fx.upstream.entries = []recordsource.Entry{at(old, 1), entry("com.example/b", "1.0.0", registry.StatusActive, "")}
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/b@1.0.0")
	published := epoch.AddDate(-1, 0, len("1.0.0"))
	want(epoch.AddDate(0, -1, 1), published)
	fx.upstream.entries = []recordsource.Entry{
		at(old, 2), at(entry("com.example/b", "1.0.0", registry.StatusDeleted, ""), 3),
	}
	fx.wantSync(mirroring.Options{Full: true, AllowShrink: true}, "status com.example/a@1.0.0: deprecated",
		"status com.example/b@1.0.0: deleted")
	want(epoch.AddDate(0, -1, 2), epoch.AddDate(0, -1, 3))
	fx.wantSync(mirroring.Options{Full: true})
	fx.upstream.entries = fx.upstream.entries[1:]
	fx.wantSync(mirroring.Options{Full: true, AllowShrink: true}, "status com.example/a@1.0.0: deleted")
	want(fx.clock.Now(), epoch.AddDate(0, -1, 3))
}

func TestFailedReadsChangeNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a", "com.example/b", "com.example/c", "com.example/d", "com.example/e")
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/b@1.0.0",
		"added com.example/c@1.0.0", "added com.example/d@1.0.0", "added com.example/e@1.0.0")
	before := fx.state()
	fx.upstream.fails = fault.New(fault.Unavailable, "it is away")
	for i, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if _, _, err := fx.sync(mirroring.Options{}); !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
		state := fx.state()
		if state.Health() != mirror.Failing || state.Reason != "it is away" ||
			!state.FailingSince.Equal(epoch.Add(2*time.Minute)) ||
			!state.LastSuccess.Equal(before.LastSuccess) || state.Servers != 5 ||
			!state.NextAt.Equal(fx.clock.Now().Add(wait)) {
			t.Errorf("after failure %d: %+v", i+1, state)
		}
	}
	fx.upstream.fails = nil
	fx.upstream.entries = active("com.example/a", "com.example/b")
	_, _, err := fx.sync(mirroring.Options{Full: true})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(fx.state().Reason, "2 of the 5") {
		t.Errorf("a list with less than half: %v, %+v", err, fx.state())
	}
	fx.upstream.changed = []recordsource.Entry{
		entry("com.example/a", "1.0.0", registry.StatusDeleted, ""),
		entry("com.example/b", "1.0.0", registry.StatusDeleted, ""),
		entry("com.example/c", "1.0.0", registry.StatusDeleted, ""),
	}
	if _, _, err = fx.sync(mirroring.Options{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("changes that delete more than half: %v", err)
	}
	fx.wantListed("com.example/a@1.0.0 active", "com.example/b@1.0.0 active", "com.example/c@1.0.0 active",
		"com.example/d@1.0.0 active", "com.example/e@1.0.0 active")
	fx.wantSync(mirroring.Options{Full: true, AllowShrink: true}, "status com.example/c@1.0.0: deleted",
		"status com.example/d@1.0.0: deleted", "status com.example/e@1.0.0: deleted")
	if state := fx.state(); state.Health() != mirror.OK || state.Reason != "" || state.Servers != 2 {
		t.Errorf("after a success: %+v", state)
	}
}

func TestRefusedAndShadowed(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.publishLocal("com.example/local", "9.0.0")
	remote := func(server string) recordsource.Entry {
		return recordsource.Entry{
			Document: []byte(
				`{"name":"` + server +
					`","description":"x","version":"1.0.0","remotes":[{"type":"sse","url":"https://one.example.com/mcp"}]}`),
		}
	}
	bad := entry("com.example/b", "2.0.0", registry.StatusActive, "")
	bad.Document = []byte(`{"name":"com.example/b","description":"","version":"2.0.0"}`)
	late := entry("com.example/b", "3.0.0", "gone", "")
	fx.upstream.entries = append(active("com.example/b", "com.example/local"), bad, late, remote("com.example/first"),
		remote("com.example/second"),
		recordsource.Entry{Unreadable: errors.New("the record is larger than 1 MiB")})
	want := []string{
		"refused : the record is larger than 1 MiB",
		"refused com.example/b@2.0.0: document",
		"refused com.example/b@3.0.0: status",
		"added com.example/b@1.0.0",
		"added com.example/first@1.0.0",
		"shadowed com.example/local: com.example/local was published here, and what is here comes first",
		"added com.example/second@1.0.0",
	}
	check := func(what string, got, want []string) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", what, got[i], want[i])
			}
		}
	}
	var diff []string
	_, err := fx.Diff(t.Context(), "corp", mirroring.Options{Report: collect(&diff)})
	must.Succeed(t, err)
	check("Diff", diff, want)
	fx.wantListed("com.example/local@9.0.0 active local")
	fx.wantEvents()
	_, got, err := fx.sync(mirroring.Options{})
	must.Succeed(t, err)
	check("Sync", got, want)
	fx.wantListed("com.example/b@1.0.0 active", "com.example/first@1.0.0 active",
		"com.example/local@9.0.0 active local", "com.example/second@1.0.0 active")
}

func TestSameVersionTwice(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = []recordsource.Entry{
		entry("com.example/a", "1.0.0", registry.StatusActive, " one"),
		entry("com.example/a", "1.0.0", registry.StatusActive, " two"),
	}
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0")
	fx.wantSync(mirroring.Options{Full: true})
	found, err := fx.servers.List(t.Context(), registrystore.Query{Limit: 1})
	if err != nil || !strings.Contains(string(found.Records[0].Document), " two") {
		t.Errorf("the document is %s, %v; want the last one", found.Records[0].Document, err)
	}
}

func TestQuarantineOfMirrored(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a", "com.example/b")
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/b@1.0.0")
	fx.hide(quarantining.Target{ServerName: "com.example/a"})
	fx.upstream.entries = []recordsource.Entry{
		entry("com.example/a", "1.0.0", registry.StatusActive, " and more"),
		entry("com.example/a", "2.0.0", registry.StatusActive, ""), active("com.example/b")[0],
	}
	const reason = "com.example/a is in quarantine: it sends mail"
	fx.wantSync(mirroring.Options{Full: true}, "refused com.example/a@1.0.0: "+reason,
		"refused com.example/a@2.0.0: "+reason)
	fx.wantListed("com.example/a@1.0.0 deleted", "com.example/b@1.0.0 active")
	fx.release(quarantining.Target{ServerName: "com.example/a"})
	// which reads everything again
	fx.wantSync(mirroring.Options{}, "replaced com.example/a@1.0.0", "added com.example/a@2.0.0")
	fx.wantListed("com.example/a@1.0.0 active", "com.example/a@2.0.0 active", "com.example/b@1.0.0 active")
}

// TestStatusOfQuarantined checks that a version in quarantine gets the status that it has upstream
// by then when it is released, whichever read found it (contract C-24).
func TestStatusOfQuarantined(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"a read of changes": false, "a full read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t, false, mirror.Draft{})
			fx.upstream.entries = append(active("com.example/a", "com.example/b"),
				entry("com.example/a", "2.0.0", registry.StatusActive, ""))
			fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/a@2.0.0",
				"added com.example/b@1.0.0")
			fx.hide(quarantining.Target{ServerName: "com.example/a"})
			fx.upstream.entries = []recordsource.Entry{
				entry("com.example/a", "1.0.0", registry.StatusDeleted, ""),
				entry("com.example/a", "2.0.0", registry.StatusDeprecated, ""), active("com.example/b")[0],
			}
			fx.wantSync(mirroring.Options{Full: full},
				"status com.example/a@1.0.0: deleted, after its release from quarantine",
				"status com.example/a@2.0.0: deprecated, after its release from quarantine")
			fx.wantSync(mirroring.Options{Full: full})
			fx.wantListed("com.example/a@1.0.0 deleted", "com.example/a@2.0.0 deleted", "com.example/b@1.0.0 active")
			fx.release(quarantining.Target{ServerName: "com.example/a"})
			fx.wantListed("com.example/a@1.0.0 deleted", "com.example/a@2.0.0 deprecated", "com.example/b@1.0.0 active")
			fx.wantSync(mirroring.Options{})
		})
	}
}

// TestPurgeOfQuarantined checks that what a purge has deleted does not come back with a release.
func TestPurgeOfQuarantined(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = append(active("com.example/b"), entry("com.example/b", "2.0.0", registry.StatusActive, ""))
	fx.wantSync(mirroring.Options{}, "added com.example/b@1.0.0", "added com.example/b@2.0.0")
	fx.hide(quarantining.Target{ServerName: "com.example/b", Version: "1.0.0"})
	if _, err := fx.Remove(t.Context(), "corp", true, nil); err != nil {
		t.Fatal(err)
	}
	fx.release(quarantining.Target{ServerName: "com.example/b", Version: "1.0.0"})
	fx.wantListed("com.example/b@1.0.0 deleted local", "com.example/b@2.0.0 deleted local")
}

func TestRemove(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{false, true} {
		fx := newFixture(t, false, mirror.Draft{})
		fx.upstream.entries = append(active("com.example/a", "com.example/b"),
			entry("com.example/b", "2.0.0", registry.StatusActive, ""))
		fx.publishLocal("com.example/local", "1.0.0")
		fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/b@1.0.0",
			"added com.example/b@2.0.0")
		fx.hide(quarantining.Target{ServerName: "com.example/b", Version: "1.0.0"})
		eventdatatest.Take(t, fakedb.NewDeliveries(fx.db))
		n, err := fx.Remove(t.Context(), "corp", purge, nil)
		if n != 2 || err != nil {
			t.Errorf("Remove = %d, %v", n, err)
		}
		if purge {
			fx.wantListed("com.example/b@1.0.0 deleted local", "com.example/b@2.0.0 deleted local",
				"com.example/local@1.0.0 active local")
			fx.wantEvents("status com.example/b@2.0.0", "status com.example/a@")
		} else {
			fx.wantListed("com.example/a@1.0.0 active local", "com.example/b@1.0.0 deleted local",
				"com.example/b@2.0.0 active local", "com.example/local@1.0.0 active local")
			fx.wantEvents()
		}
		if _, err := fx.Remove(t.Context(), "corp", purge, nil); !fault.Is(err, fault.NotFound) {
			t.Errorf("the second Remove returned %v", err)
		}
		if _, err := fx.Sync(t.Context(), "corp", mirroring.Options{}); !fault.Is(err, fault.NotFound) {
			t.Errorf("Sync of a mirror that was removed returned %v", err)
		}
	}
}

// TestRemoveDuringRead checks that a read whose mirror is removed meanwhile takes nothing.
func TestRemoveDuringRead(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a")
	fx.upstream.during = func(ctx context.Context) {
		if _, err := fx.Remove(ctx, "corp", false, nil); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := fx.sync(mirroring.Options{}); err == nil {
		t.Error("the read returned no error")
	}
	fx.wantListed()
}

func TestOneReadsAtATime(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a")
	fx.upstream.during = func(ctx context.Context) {
		if _, err := fx.Sync(ctx, "corp", mirroring.Options{}); !errors.Is(err, mirroring.ErrBusy) {
			t.Errorf("the second read returned %v, want ErrBusy", err)
		}
	}
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0")
	fx.upstream.during = nil
	if _, err := fx.Sync(t.Context(), "corp", mirroring.Options{IfDue: true}); !errors.Is(err, mirroring.ErrBusy) {
		t.Errorf("a read before its time returned %v, want ErrBusy", err)
	}
}

// TestClockThatWasAhead reads once with a clock that is two days ahead, and then with the right
// one.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a")
	fx.clock.Advance(48 * time.Hour)
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0")
	fx.clock.Advance(-48 * time.Hour)
	fx.upstream.entries = active("com.example/a", "com.example/b")
	s := fx.wantSync(mirroring.Options{IfDue: true}, "added com.example/b@1.0.0")
	if state := fx.state(); !s.Full || !state.LastSuccess.Equal(fx.clock.Now()) ||
		!state.NextAt.Equal(fx.clock.Now().Add(time.Hour)) {
		t.Errorf("the read is %+v, the state %+v", s, state)
	}
}

// TestCanceledReads checks that a read whose context ends leaves the state as it is.
func TestCanceledReads(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a")
	before := fx.state()
	ctx, cancel := context.WithCancel(t.Context())
	fx.upstream.during = func(context.Context) { cancel() }
	if _, err := fx.Sync(ctx, "corp", mirroring.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Sync returned %v", err)
	}
	fx.upstream.during = nil
	if after := fx.state(); !reflect.DeepEqual(after, before) {
		t.Errorf("the state is %+v, was %+v", after, before)
	}
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0") // the lease was released
}

func TestRegistryThatKnowsNoUpdatedSince(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.upstream.entries = active("com.example/a")
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0")
	fx.upstream.entries = active("com.example/a", "com.example/b")
	fx.upstream.during = func(context.Context) {
		fx.upstream.fails = nil
		if !fx.upstream.reads[len(fx.upstream.reads)-1].IsZero() {
			fx.upstream.fails = fault.New(fault.Unsupported, "no updated_since")
		}
	}
	if s := fx.wantSync(mirroring.Options{}, "added com.example/b@1.0.0"); !s.Full {
		t.Errorf("the summary is %+v", s)
	}
}

func TestPutRefusesBadMirrors(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	for want, d := range map[string]mirror.Draft{
		"the name of a mirror":        {Name: "Corp", URL: "https://example.com"},
		"url must begin with":         {Name: "a", URL: "ftp://example.com"},
		"url must be an absolute":     {Name: "a", URL: "example.com"},
		"url must not contain a user": {Name: "a", URL: "https://u:p@example.com"},
		"url must not have a query":   {Name: "a", URL: "https://example.com?x"},
		"url must end before /v0.1":   {Name: "a", URL: "https://example.com/v0.1/"},
		"include":                     {Name: "a", URL: "https://example.com", Include: []string{"a*b"}},
		"exclude":                     {Name: "a", URL: "https://example.com", Exclude: []string{""}},
		"interval must be from 1m0s":  {Name: "a", URL: "https://example.com", Interval: time.Second},
		"review must be":              {Name: "a", URL: "https://example.com", Review: "maybe"},
	} {
		if _, _, err := fx.Put(t.Context(), d, nil); err == nil || !strings.HasPrefix(fault.PublicMessage(err), want) {
			t.Errorf("Put(%+v) returned %v, want %q", d, err, want)
		}
	}
}

// TestPut checks that a replaced mirror is read again soon and whole, with its secret, and that only a
// difference does that.
func TestPut(t *testing.T) {
	t.Parallel()
	address := "https://registry.example.com/registries/x/t/tgview_secret"
	fx := newFixture(t, false, mirror.Draft{URL: address})
	fx.upstream.entries = active("com.example/a", "com.example/b1", "com.example/b2")
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "added com.example/b1@1.0.0",
		"added com.example/b2@1.0.0")
	public := "https://registry.example.com/registries/x/t/***"
	if _, created, err := fx.Put(t.Context(), mirror.Draft{Name: "corp", URL: public}, nil); err != nil || created {
		t.Fatal(created, err)
	}
	if fx.state().LastFull.IsZero() {
		t.Error("a mirror that did not change is read whole")
	}
	m, created, err := fx.Put(t.Context(), mirror.Draft{Name: "corp", URL: public, Exclude: []string{"com.example/b*"}}, nil)
	if err != nil || created || m.URL.Address() != address {
		t.Errorf("replaced by %+v, created %t, %v", m, created, err)
	}
	if s := fx.state(); !s.LastFull.IsZero() || s.Servers != 3 || !s.NextAt.Equal(fx.clock.Now()) {
		t.Errorf("the state is %+v", s)
	}
	if s := fx.wantSync(mirroring.Options{}, "status com.example/b1@1.0.0: deleted",
		"status com.example/b2@1.0.0: deleted"); !s.Full {
		t.Errorf("the summary is %+v", s)
	}
	refusal := fault.New(fault.Stale, "changed")
	refuse := func(*mirror.Mirror) error { return refusal }
	if _, _, err := fx.Put(t.Context(), mirror.Draft{Name: "corp", URL: public}, refuse); !errors.Is(err, refusal) {
		t.Errorf("a refused change: %v", err)
	}
	if _, err := fx.Remove(t.Context(), "corp", false, refuse); !errors.Is(err, refusal) {
		t.Errorf("a refused removal: %v", err)
	}
	if err := fx.Schedule(t.Context(), "corp"); err != nil || !fx.state().NextAt.Equal(fx.clock.Now()) {
		t.Errorf("scheduled at %s, %v", fx.state().NextAt, err)
	}
}
