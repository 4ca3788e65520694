package registrystoretest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// MirrorStores are empty stores of mirrors and of what they have taken, with servers and
// transactions. The store of servers requires unique remote URLs.
type MirrorStores struct {
	Mirrors  registrystore.Mirrors
	Rereader registrystore.MirrorRereader
	Mirrored registrystore.MirroredVersions
	Reader   registrystore.ServerReader
	Writer   registrystore.ServerWriter
	Runner   transaction.Runner
}

// RunMirrors runs the tests of the stores of mirrors. open is called for each test.
func RunMirrors(t *testing.T, open func(t *testing.T) MirrorStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s MirrorStores){
		"an empty store has no mirrors":                                        hasNoMirrors,
		"stored mirrors have the values of all fields and are ordered by name": keepsMirrors,
		"a mirror replaces the one with its name, and keeps its state":         replacesMirror,
		"a removed mirror is not found":                                        removesMirror,
		"only the holder of the lease can save the state of a mirror":          savesMirrorStates,
		"a lease has one holder until it ends or is released":                  leasesMirrorToOne,
		"one of several parallel requests for a lease succeeds":                leasesMirrorInParallel,
		"tracked versions are returned as they were stored":                    keepsTracked,
		"a page of tracked versions never splits a server":                     pagesTracked,
		"many tracked versions are stored in one call":                         putsManyTracked,
		"the mirror that a server comes from is stored":                        keepsOrigins,
		"servers of a removed mirror can become local":                         adoptsServers,
		"servers of a removed mirror can be deleted":                           purgesServers,
		"a mirrored server that ends becomes local and can be published again": endsServers,
		"many servers are saved in one transaction":                            savesManyServers,
		"mirrored servers may share remote URLs":                               sharesRemoteURLs,
		"a failed transaction changes no mirror":                               rollsMirrorsBack,
		"a call with a cancelled context fails":                                refusesCanceledMirrors,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

func newMirror(t *testing.T, d mirror.Draft) mirror.Mirror {
	t.Helper()
	if d.URL == "" {
		d.URL = "https://registry.example.com"
	}
	m, err := mirror.New(d, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s MirrorStores) addMirror(t *testing.T, d mirror.Draft) mirror.Mirror {
	t.Helper()
	m := newMirror(t, d)
	if err := s.Mirrors.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (s MirrorStores) wantMirrors(t *testing.T, want ...mirror.Mirror) {
	t.Helper()
	got, err := s.Mirrors.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("List = %+v, want %+v", got, want)
	}
	for i := range got {
		if !got[i].Selection.Equal(want[i].Selection) {
			t.Errorf("mirror %d selects %+v, want %+v", i, got[i].Selection, want[i].Selection)
		}
		got[i].Selection = want[i].Selection
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("mirror %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func hasNoMirrors(t *testing.T, s MirrorStores) {
	t.Helper()
	s.wantMirrors(t)
	if err := s.Mirrors.Remove(t.Context(), "corp"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove returned %v, want fault.NotFound", err)
	}
	if _, err := s.Mirrors.Lease(t.Context(), "corp", registrystore.Lease{
		Holder: "a", Now: epoch, Until: hour(1),
	}); !fault.Is(err, fault.NotFound) {
		t.Errorf("Lease returned %v, want fault.NotFound", err)
	}
	if err := s.Mirrors.Release(t.Context(), "corp", "a"); err != nil {
		t.Errorf("Release returned %v", err)
	}
	if got, err := s.Mirrored.Page(t.Context(), "corp", "", 10); len(got) > 0 || err != nil {
		t.Errorf("Page = %v, %v", got, err)
	}
	if got, err := s.Mirrored.OfServers(t.Context(), "corp", nil); len(got) > 0 || err != nil {
		t.Errorf("OfServers of no server = %v, %v", got, err)
	}
}

func keepsMirrors(t *testing.T, s MirrorStores) {
	t.Helper()
	second := s.addMirror(t, mirror.Draft{Name: "public"})
	first := s.addMirror(t, mirror.Draft{
		Name: "corp", URL: "http://127.0.0.1:8080/registries/x/t/tgview_secret", Include: []string{
			"com.example/*", "com.example.b/*",
		},
		Exclude: []string{"com.example/draft"}, Interval: 90 * time.Second, Review: "trusted", Flags: mirror.Flags{Lenient: true},
	})
	s.wantMirrors(t, first, second)
}

func replacesMirror(t *testing.T, s MirrorStores) {
	t.Helper()
	m := s.addMirror(t, mirror.Draft{Name: "corp"})
	holder := registrystore.Lease{Holder: "one", Now: epoch, Until: epoch.Add(time.Minute)}
	if ok, err := s.Mirrors.Lease(t.Context(), "corp", holder); err != nil || !ok {
		t.Fatal(ok, err)
	}
	m.State = mirror.State{
		NextAt: epoch.Add(time.Hour), LastSuccess: epoch, LastFull: epoch, Servers: 7,
	}
	if err := s.Mirrors.SaveState(t.Context(), "corp", "one", m.State); err != nil {
		t.Fatal(err)
	}
	second := newMirror(t, mirror.Draft{
		Name: "corp", URL: "https://other.example.com", Include: []string{"com.example/*"}, Exclude: []string{"com.example/b"},
		Interval: time.Minute, Review: "trusted", Flags: mirror.Flags{Lenient: true}, ManagedBy: "platform",
	})
	second.CreatedAt = epoch.Add(time.Minute)
	if err := s.Mirrors.Put(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	second.CreatedAt = m.CreatedAt
	m.State.NextAt, m.State.LastFull = second.State.NextAt, second.State.LastFull
	second.State = m.State
	s.wantMirrors(t, second)
}

func removesMirror(t *testing.T, s MirrorStores) {
	t.Helper()
	s.addMirror(t, mirror.Draft{Name: "corp"})
	other := s.addMirror(t, mirror.Draft{Name: "other"})
	for _, m := range []mirror.Name{"corp", "other"} {
		s.put(t, m, tracked(t, "com.example/x", "1.0.0", 1))
	}
	if err := s.Mirrors.Remove(t.Context(), "corp"); err != nil {
		t.Fatal(err)
	}
	s.wantMirrors(t, other)
	s.wantPage(t, "corp", "", 10)
	s.wantPage(t, "other", "", 10, tracked(t, "com.example/x", "1.0.0", 1))
}

// corpLease is the lease of the mirror corp.
func (s MirrorStores) corpLease() leaseStore {
	return leaseStore{
		lease: func(ctx context.Context, l registrystore.Lease) (bool, error) {
			return s.Mirrors.Lease(ctx, "corp", l)
		},
		release: func(ctx context.Context, holder string) error { return s.Mirrors.Release(ctx, "corp", holder) },
	}
}

func savesMirrorStates(t *testing.T, s MirrorStores) {
	t.Helper()
	m := s.addMirror(t, mirror.Draft{Name: "corp"})
	state := mirror.State{
		Refused: mirror.Refusals{mirror.RuleDocument: 12, mirror.RuleGranted: 3},
		NextAt:  hour(5), LastSuccess: hour(1), LastFull: hour(2), FailingSince: hour(3), Failures: 4,
		Reason: "it's away", Servers: 6,
	}
	if err := s.Mirrors.SaveState(t.Context(), "corp", "a", state); !fault.Is(err, fault.Conflict) {
		t.Errorf("SaveState without a lease returned %v, want fault.Conflict", err)
	}
	s.wantMirrors(t, m)
	s.corpLease().take(t, "a", 0)
	if err := s.Mirrors.SaveState(t.Context(), "corp", "b", state); !fault.Is(err, fault.Conflict) {
		t.Errorf("SaveState of another holder returned %v, want fault.Conflict", err)
	}
	if err := s.Mirrors.SaveState(t.Context(), "corp", "a", state); err != nil {
		t.Fatal(err)
	}
	m.State = state
	s.wantMirrors(t, m)
	for _, of := range []mirror.Name{"corp", "missing"} {
		if err := s.Rereader.Reread(t.Context(), of); err != nil {
			t.Errorf("Reread of %s returned %v", of, err)
		}
	}
	m.State.LastFull = time.Time{}
	s.wantMirrors(t, m)
	m.State = mirror.State{NextAt: hour(6)}
	if err := s.Mirrors.SaveState(t.Context(), "corp", "a", m.State); err != nil {
		t.Fatal(err)
	}
	s.wantMirrors(t, m)
}

func leasesMirrorToOne(t *testing.T, s MirrorStores) {
	t.Helper()
	s.addMirror(t, mirror.Draft{Name: "corp"})
	s.corpLease().testOneHolder(t)
	s.corpLease().testHolderAhead(t)
}

func leasesMirrorInParallel(t *testing.T, s MirrorStores) {
	t.Helper()
	s.addMirror(t, mirror.Draft{Name: "corp"})
	s.corpLease().testParallelHolders(t)
}

func rollsMirrorsBack(t *testing.T, s MirrorStores) {
	t.Helper()
	failed := errors.New("failed")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(s.Mirrors.Put(ctx, newMirror(t, mirror.Draft{Name: "corp"})),
			s.Mirrored.Put(ctx, "corp", []mirror.Tracked{tracked(t, "com.example/x", "1.0.0", 1)}), failed)
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	s.wantMirrors(t)
	s.wantPage(t, "corp", "", 10)
}

func refusesCanceledMirrors(t *testing.T, s MirrorStores) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.Mirrors.List(ctx)
	_, err2 := s.Mirrored.Page(ctx, "corp", "", 1)
	_, err3 := s.Mirrored.OfServers(ctx, "corp", []registry.Name{name(t, "com.example/x")})
	for i, err := range []error{
		err1, err2, err3, s.Mirrors.Put(ctx, newMirror(t, mirror.Draft{Name: "corp"})),
		s.Mirrored.Put(ctx, "corp", nil),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d with a canceled context returned %v", i, err)
		}
	}
}
