package reviewing_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestPagesEndWithComparedDocuments lists many reviews of new versions of a server whose document
// is large. Each review has the document, and pages end early.
func TestPagesEndWithComparedDocuments(t *testing.T) {
	t.Parallel()
	const pending = 45
	fx := newFixture(t)
	if _, err := fx.service.Approve(t.Context(), authority.Operator(),
		fx.submit(t, "ada", document(serverName, "1.0.0")).Pending, ""); err != nil {
		t.Fatal(err)
	}
	served := fx.enlarge(t, serverName, 900_000)
	for n := range pending {
		version, err := registry.ParseVersion(fmt.Sprintf("2.%d.0", n))
		must.Succeed(t, err)
		r := review.Review{
			ID: registry.ReviewID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)), Name: served.Name, Version: version,
			State: review.Pending,
			Kind:  review.NewVersion, Document: []byte(document(serverName, version.String())),
			Submitter:   review.Submitter{Key: "ada"},
			SubmittedAt: fx.clock.Now().Add(time.Duration(n) * time.Second),
		}
		if err := fx.db.Atomically(t.Context(), func(ctx context.Context) error {
			return fx.store.Add(ctx, r, pending)
		}); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for q := (reviewing.Query{Limit: "100"}); ; {
		p, err := fx.service.List(t.Context(), authority.Operator(), q)
		must.Succeed(t, err)
		if len(p.Reviews) > 5 { // of 900 kB each, in 4 MiB
			t.Errorf("a page has %d reviews", len(p.Reviews))
		}
		for _, r := range p.Reviews {
			// x and the version
			if want := fmt.Sprintf("2.%d.0",
				seen); r.Version.String() != want || !bytes.Equal(r.Replaces, served.Document) || len(r.Diff) != 2 {
				t.Errorf("review %d is of %s, with %d bytes to compare and %d differences", seen, r.Version,
					len(r.Replaces), len(r.Diff))
			}
			seen++
		}
		if q.Cursor = p.NextCursor; q.Cursor == "" {
			break
		}
	}
	if seen != pending {
		t.Errorf("the pages have %d reviews, want %d", seen, pending)
	}
	brief := reviewing.Query{Limit: "100", Filter: reviewing.Filter{Brief: true}}
	p, err := fx.service.List(t.Context(), authority.Operator(), brief)
	if err != nil || len(p.Reviews) != pending || p.NextCursor != "" {
		t.Fatalf("%d brief reviews: %v", len(p.Reviews), err)
	}
	if r := p.Reviews[0]; r.Version.String() != "2.0.0" || r.Document != nil || r.Replaces != nil || r.Diff != nil {
		t.Errorf("the first brief review is %+v", r)
	}
}

// enlarge replaces the document of the latest version of a server by one with so many bytes more,
// and returns the record.
func (fx *fixture) enlarge(t *testing.T, server string, size int) registry.Record {
	t.Helper()
	name, err := registry.ParseName(server)
	must.Succeed(t, err)
	record, err := fx.servers.Latest(t.Context(), name, false)
	must.Succeed(t, err)
	record.Document = []byte(document(server, record.Version.String(), `"x":"`+strings.Repeat("x", size)+`"`))
	err = fx.db.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := fx.servers.Lock(ctx, name); err != nil {
			return err
		}
		return fx.servers.Save(ctx, []registrystore.Change{{Release: record.Release, Document: record.Document}})
	})
	must.Succeed(t, err)
	return record
}
