package browsing_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// watches counts how often they are read.
type watches struct {
	registrystore.ToolWatches

	all   []tools.Watch
	reads int
}

func (w *watches) Of(context.Context, registry.Name) ([]tools.Watch, error) {
	w.reads++
	return w.all, nil
}

// TestChecked checks when a server was asked last, and how many remotes are silent, which a page of a server reads with
// the lists at once.
func TestChecked(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	stored := &watches{all: []tools.Watch{
		{Remote: "https://a.example.com", AskedAt: last.Add(-time.Hour)}, {Remote: "https://b.example.com", AskedAt: last, Problem: "away"},
		{Remote: "https://c.example.com"},
	}}
	reader := browsing.NewTools(browsing.ToolsPorts{Lists: fakedb.NewToolLists(fakedb.New()), Watches: stored})
	_, check, err := reader.Checked(t.Context(), registry.Record{Document: []byte("{}")})
	must.Succeed(t, err)
	if want := (browsing.LastCheck{At: last, Asked: 2, Silent: 1}); check != want || stored.reads != 1 {
		t.Errorf("the last check is %+v after %d reads, want %+v", check, stored.reads, want)
	}
}
