package browsing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

const large = 300 << 10

// measuringStore measures the documents that a store returns at once.
type measuringStore struct {
	registrystore.SnapshotReader
	most, bound int // bytes of documents, and what was asked for last
}

func (s *measuringStore) measure(p registrystore.Page, bound int) {
	held := 0
	for _, r := range p.Records {
		held += len(r.Document)
	}
	s.most, s.bound = max(s.most, held), bound
}

func (s *measuringStore) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	p, err := s.SnapshotReader.List(ctx, q)
	s.measure(p, q.Bytes)
	return p, err
}

func (s *measuringStore) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	p, err := s.SnapshotReader.Versions(ctx, q)
	s.measure(p, q.Bytes)
	return p, err
}

func serverName(t testing.TB) registry.Name {
	t.Helper()
	n, err := registry.ParseName("com.a/large")
	must.Succeed(t, err)
	return n
}

func numbered(t testing.TB, i int) registry.Version {
	t.Helper()
	v, err := registry.ParseVersion(fmt.Sprintf("1.0.%d", i))
	must.Succeed(t, err)
	return v
}

// newLargeFixture returns a fixture with n large versions of one server.
func newLargeFixture(t testing.TB, n int) *fixture {
	t.Helper()
	s := newFixture()
	for i := range n {
		s.changeTo(t, serverName(t), bytes.Repeat([]byte{' '}, large), func(l *registry.Lineage) error {
			_, err := l.Publish(numbered(t, i), s.now)
			return err
		})
	}
	return s
}

// TestLargePagesEndEarly wants every version listed, however few fit a page.
func TestLargePagesEndEarly(t *testing.T) {
	t.Parallel()
	const n, bound = 40, 4 << 20
	for _, search := range []string{"", "large"} {
		store := &measuringStore{SnapshotReader: newLargeFixture(t, n).servers}
		b := browsing.New(store, page.NewSealer(key))
		var all []string
		pages := 0
		for q := (browsing.Query{Limit: "100", Search: search}); ; pages++ {
			got, err := b.List(t.Context(), q)
			if err != nil || len(got.Records) == 0 {
				t.Fatalf("page %d: %v, %v", pages, ids(got.Records), err)
			}
			all = append(all, ids(got.Records)...)
			if q.Cursor = got.NextCursor; q.Cursor == "" {
				break
			}
		}
		if slices.Sort(all); len(slices.Compact(all)) != n || pages != n*large/bound {
			t.Errorf("%d versions on %d pages, want %d", len(all), pages, n)
		}
		if store.most >= bound+large {
			t.Errorf("%d bytes are held at once, want less than %d", store.most, bound+large)
		}
	}
}

// longHistory returns the history of a large fixture.
func longHistory(t testing.TB, r registrystore.SnapshotReader) *browsing.LongHistory {
	t.Helper()
	h, err := browsing.New(r, page.NewSealer(key)).Versions(t.Context(), "com.a/large", "")
	if err != nil || h.Long == nil || h.Records != nil {
		t.Fatalf("the history has %d records, %v, want a long one", len(h.Records), err)
	}
	return h.Long
}

func TestLongHistory(t *testing.T) {
	t.Parallel()
	const n, bound = 40, 1 << 20
	store := &measuringStore{SnapshotReader: newLargeFixture(t, n).servers}
	h := longHistory(t, store)
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
		t.Errorf("behind the end: %v", err)
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
			s := newLargeFixture(t, n)
			h := longHistory(t, s.servers)
			if _, err := h.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.changeTo(t, serverName(t), bytes.Repeat([]byte{'x'}, large), change(s))
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
