package browsing_test

import (
	"bytes"
	"context"
	"fmt"
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
