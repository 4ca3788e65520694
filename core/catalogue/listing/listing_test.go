package listing_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/catalogue/listing"
)

func TestListShowsChangesAtOnce(t *testing.T) {
	t.Parallel()
	store := records.NewMethods(records.New())
	lister := listing.New(store)
	before, err := lister.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	added := catalogue.Method{ID: 7, Path: "/api/seven.{format}", ServiceID: 1, ServiceName: "Test", Parameters: []string{"format"}}
	if err := store.Add(t.Context(), added); err != nil {
		t.Fatal(err)
	}
	after, err := lister.List(t.Context())
	if err != nil || len(after) != len(before)+1 {
		t.Fatalf("List = %d methods, %v, want one more than %d", len(after), err, len(before))
	}
	if !slices.IsSortedFunc(after, func(a, b catalogue.Method) int { return int(a.ID - b.ID) }) {
		t.Errorf("List = %+v, want it ordered by id", after)
	}
}

func TestStoreFailurePasses(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listing.New(records.NewMethods(records.New())).List(ctx); err == nil {
		t.Error("List under a cancelled context has no error")
	}
}
