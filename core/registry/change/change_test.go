package change_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// log keeps the names of the steps in their order. It fails at one of them.
type log struct {
	steps  []string
	fails  string
	failed error
}

func (l *log) step(name string) error {
	l.steps = append(l.steps, name)
	if name == l.fails {
		return l.failed
	}
	return nil
}

func (l *log) Record(context.Context, authority.Act) error { return l.step("act") }

// TestCommit checks the order of the steps, and that what one of them cannot do is not done at all.
func TestCommit(t *testing.T) {
	all := []string{"decide", "store", "announce", "act"}
	name, err := registry.ParseName("com.example/weather")
	must.Succeed(t, err)
	version, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	for i, fails := range append(all, "") {
		db := fakedb.New()
		servers, l := fakedb.NewServers(db, false), &log{fails: fails, failed: errors.New(fails)}
		ports := change.Ports{Transactions: db, Writer: servers, Quarantine: fakedb.NewQuarantine(db), Acts: l}
		err := change.Commit(t.Context(), ports, name,
			func(_ context.Context, s change.Server) (change.Decision, error) {
				if _, err := s.Publish(version, time.Unix(1, 0)); err != nil || len(s.Releases) > 0 {
					t.Errorf("the server has %+v, error %v", s.Releases, err)
				}
				return change.Decision{
					Act: authority.Act{Caller: authoritytest.Person("ada")},
					Store: func(ctx context.Context) error {
						added := registrystore.Change{Release: s.Changes()[0], Document: []byte("{}")}
						return errors.Join(servers.Save(ctx, []registrystore.Change{added}), l.step("store"))
					},
					Announce: func(context.Context) error { return l.step("announce") },
				}, l.step("decide")
			})
		if want := all[:min(i+1, len(all))]; !slices.Equal(l.steps, want) || (err == nil) != (fails == "") {
			t.Errorf("with a failure at %q: %q, %v, want %q", fails, l.steps, err, want)
		}
		if _, err := servers.Version(t.Context(), name, version, true); (err == nil) != (fails == "") {
			t.Errorf("with a failure at %q, the version: %v", fails, err)
		}
	}
}
