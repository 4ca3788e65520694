package registryrecords_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// BenchmarkToolWatches measures what 10,000 remotes cost that are watched: a comparison with what is listed, a
// search in vain, and the lease and the end of a question.
func BenchmarkToolWatches(b *testing.B) {
	relationaltest.MeasureInEach(b, func(b *testing.B, db *relationaltest.Database) {
		stores, at := newStores(db), time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
		version, err := registry.ParseVersion("1.0.0")
		must.Succeed(b, err)
		for i := range 100 {
			must.Succeed(b, db.Atomically(b.Context(), func(ctx context.Context) error {
				for j := range 100 {
					name, err := registry.ParseName(fmt.Sprintf("com.example/%d-%d", i, j))
					if err == nil {
						_, err = stores.Writer.Lock(ctx, name)
					}
					if err != nil {
						return err
					}
					if err := stores.Writer.Save(ctx, []registrystore.Change{{
						Release: registry.Release{
							Name: name, Version: version, Status: registry.StatusActive, PublishedAt: at, UpdatedAt: at, StatusChangedAt: at,
						},
						Document: []byte("{}"), Remotes: []registry.RemoteURL{registry.RemoteURL(fmt.Sprintf("https://%d-%d.example/mcp", i, j))},
					}}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		must.Succeed(b, stores.ToolWatches.Refresh(b.Context(), at, time.Hour))
		claim := func(now time.Time) bool {
			w, ok, err := stores.ToolWatches.Claim(b.Context(), registrystore.WatchClaim{
				Lease: registrystore.Lease{Holder: "h", Now: now, Until: now.Add(time.Minute)}, Most: 4,
			})
			must.Succeed(b, err)
			if ok {
				w.NextAt = now.Add(time.Hour)
				must.Succeed(b, stores.ToolWatches.Save(b.Context(), w, "h"))
			}
			return ok
		}
		b.Run("question", func(b *testing.B) {
			for b.Loop() {
				claim(at)
			}
		})
		b.Run("search in vain", func(b *testing.B) {
			for b.Loop() {
				claim(at.Add(-time.Hour))
			}
		})
		b.Run("comparison", func(b *testing.B) {
			for b.Loop() {
				must.Succeed(b, stores.ToolWatches.Refresh(b.Context(), at, time.Hour))
			}
		})
	})
}
