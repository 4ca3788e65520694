package history_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const large = 300 << 10

// measuringStore measures the documents that a store returns at once.
type measuringStore struct {
	registrystore.ServerReader
	most, bound int // bytes of documents, and what was asked for last
}

func (s *measuringStore) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	p, err := s.ServerReader.Versions(ctx, q)
	held := 0
	for _, r := range p.Records {
		held += len(r.Document)
	}
	s.most, s.bound = max(s.most, held), q.Bytes
	return p, err
}

func numbered(t testing.TB, i int) registry.Version {
	t.Helper()
	v, err := registry.ParseVersion(fmt.Sprintf("1.0.%d", i))
	must.Succeed(t, err)
	return v
}

// fixture is a registry in memory with large versions of one server, published a minute apart.
type fixture struct {
	db      *fakedb.Database
	servers *fakedb.Servers
	name    registry.Name
	now     time.Time
}

func newFixture(t testing.TB, n int) *fixture {
	t.Helper()
	name, err := registry.ParseName("com.a/large")
	must.Succeed(t, err)
	db := fakedb.New()
	s := &fixture{db: db, servers: fakedb.NewServers(db, false), name: name, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for i := range n {
		s.change(t, ' ', func(l *registry.Lineage) error { _, err := l.Publish(numbered(t, i), s.now); return err })
	}
	return s
}

// change gives all versions that are changed a document of one letter.
func (s *fixture) change(t testing.TB, letter byte, decide func(*registry.Lineage) error) {
	t.Helper()
	s.now = s.now.Add(time.Minute)
	must.Succeed(t, s.db.Atomically(t.Context(), func(ctx context.Context) error {
		releases, err := s.servers.Lock(ctx, s.name)
		if err != nil {
			return err
		}
		l := registry.NewLineage(s.name, releases)
		if err := decide(l); err != nil {
			return err
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{Release: r, Document: bytes.Repeat([]byte{letter}, large)})
		}
		return s.servers.Save(ctx, changes)
	}))
}

// longHistory returns the history of a fixture.
func longHistory(t testing.TB, s *fixture, r registrystore.ServerReader) *history.Long {
	t.Helper()
	h, err := history.AllVersions(t.Context(), r, s.name, false)
	if err != nil || h.Long == nil || h.Records != nil {
		t.Fatalf("the history has %d records, %v, want a long one", len(h.Records), err)
	}
	return h.Long
}

func TestLongHistory(t *testing.T) {
	t.Parallel()
	const n, bound = 40, 1 << 20
	s := newFixture(t, n)
	store := &measuringStore{ServerReader: s.servers}
	h := longHistory(t, s, store)
	store.most = 0 // the first page ends early
	for i, e := range h.Editions() {
		if e.Version != numbered(t, n-1-i) || e.Size != large {
			t.Fatalf("edition %d is %v of %d bytes", i, e.Version, e.Size)
		}
	}
	read := 0
	for {
		records, err := h.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(records) == 0 {
			t.Fatalf("after %d: %d records, %v", read, len(records), err)
		}
		for _, r := range records {
			if r.Release != h.Editions()[read].Release || len(r.Document) != large {
				t.Fatalf("record %d is %v with %d bytes", read, r.Version, len(r.Document))
			}
			read++
		}
	}
	if read != n || store.most >= bound+large || store.bound != bound {
		t.Errorf("%d versions, %d bytes at once, want %d and less than %d", read, store.most, n, bound+large)
	}
	if _, err := h.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// TestLongHistoryIsOfOneMoment wants no history with versions from before and after a change.
func TestLongHistoryIsOfOneMoment(t *testing.T) {
	t.Parallel()
	const n = 20
	for name, change := range map[string]func(s *fixture) func(*registry.Lineage) error{
		"a document is replaced": func(s *fixture) func(*registry.Lineage) error {
			return func(l *registry.Lineage) error { _, err := l.Replace(numbered(t, 3), s.now); return err }
		},
		"a version is deleted": func(s *fixture) func(*registry.Lineage) error {
			return func(l *registry.Lineage) error { _, err := l.Delete(numbered(t, 0), s.now); return err }
		},
		"a version is deprecated": func(s *fixture) func(*registry.Lineage) error {
			return func(l *registry.Lineage) error {
				u, err := registry.NewStatusUpdate(registry.StatusDeprecated, "")
				if err != nil {
					return err
				}
				_, err = l.SetStatus(numbered(t, 10), u, s.now)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, n)
			h := longHistory(t, s, s.servers)
			if _, err := h.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.change(t, 'x', change(s))
			var err error
			for err == nil {
				_, err = h.Next(t.Context())
			}
			if errors.Is(err, io.EOF) {
				t.Error("the history ends as if nothing had changed")
			}
			if _, again := h.Next(t.Context()); !errors.Is(again, err) {
				t.Errorf("the next call: %v, want %v again", again, err)
			}
		})
	}
}
