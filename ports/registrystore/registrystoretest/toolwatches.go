package registrystoretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ToolWatchStores are an empty store of watches, with its servers and transactions.
type ToolWatchStores struct {
	Watches    registrystore.ToolWatches
	Lists      registrystore.ToolLists
	Writer     registrystore.ServerWriter
	Quarantine registrystore.Quarantine
	Runner     transaction.Runner
}

// RunToolWatches runs the tests of the stores of watches. open is called for each test.
func RunToolWatches(t *testing.T, open func(t *testing.T) ToolWatchStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s ToolWatchStores){
		"remotes of listed versions are watched":              watchesListed,
		"what tools put in quarantine is watched":             watchesOwnQuarantine,
		"a watch is returned as it was stored":                keepsWatches,
		"a watch has one holder":                              leasesWatches,
		"a remote is claimed by its name":                     claimsRemote,
		"a clock that was ahead does not stop questions":      forgetsClockAhead,
		"callers at once get different watches":               claimsInParallel,
		"versions with lists that differ are counted":         countsChanged,
		"a call about watches with a cancelled context fails": refusesCanceledWatches,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

const ofWatches = "com.example/watched"

// publish stores versions of the server with remotes; with a nil document it changes the status.
func (s ToolWatchStores) publish(t *testing.T, changes ...registrystore.Change) {
	t.Helper()
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := s.Writer.Lock(ctx, name(t, ofWatches)); err != nil {
			return err
		}
		return s.Writer.Save(ctx, changes)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s ToolWatchStores) refresh(t *testing.T, now time.Time) {
	t.Helper()
	if err := s.Watches.Refresh(t.Context(), now, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func (s ToolWatchStores) claim(t *testing.T, holder string, now time.Time) (tools.Watch, bool) {
	t.Helper()
	w, ok, err := s.Watches.Claim(t.Context(), registrystore.WatchClaim{
		Lease: registrystore.Lease{Holder: holder, Now: now, Until: now.Add(time.Minute)}, Most: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, ok
}

// require checks which remotes of the server are watched.
func (s ToolWatchStores) require(t *testing.T, want string) []tools.Watch {
	t.Helper()
	all, err := s.Watches.Of(t.Context(), name(t, ofWatches))
	var got []string
	for _, w := range all {
		got = append(got, string(w.Remote))
	}
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("the watches are of %q, %v, want %q", got, err, want)
	}
	return all
}

func watchesListed(t *testing.T, s ToolWatchStores) {
	t.Helper()
	deleted := release(t, ofWatches, "3.0.0", 3)
	deleted.Status = registry.StatusDeleted
	s.publish(t,
		published(release(t, ofWatches, "1.0.0", 1), "https://a.example/mcp", "https://b.example/{tenant}", "wss://b.example/mcp",
			registry.RemoteURL("https://b.example/"+strings.Repeat("x", 1000))),
		published(release(t, ofWatches, "2.0.0", 2), "https://a.example/mcp", "http://localhost/mcp"),
		published(deleted, "https://c.example/mcp"))
	s.require(t, "")
	for range 2 {
		s.refresh(t, hour(4))
		s.require(t, "http://localhost/mcp https://a.example/mcp")
	}
	w, ok := s.claim(t, "h", hour(4))
	if !ok || w.Remote != "http://localhost/mcp" || len(w.Versions) != 1 || !w.NextAt.Equal(hour(4)) {
		t.Errorf("the first watch is %+v, %t", w, ok)
	}
	if w, ok := s.claim(t, "i", hour(4)); !ok || w.Remote != "https://a.example/mcp" || len(w.Versions) != 2 ||
		w.Versions[0] != version(t, "1.0.0") || w.Versions[1] != version(t, "2.0.0") {
		t.Errorf("the second watch is %+v, %t", w, ok)
	}
	gone := release(t, ofWatches, "2.0.0", 2)
	gone.Status = registry.StatusDeleted
	s.publish(t, state(gone))
	s.refresh(t, hour(4))
	s.require(t, "http://localhost/mcp https://a.example/mcp") // somebody has its lease
	s.refresh(t, hour(5))
	s.require(t, "https://a.example/mcp")
}

func watchesOwnQuarantine(t *testing.T, s ToolWatchStores) {
	t.Helper()
	s.publish(t, published(release(t, ofWatches, "1.0.0", 1), "https://a.example/mcp"),
		published(release(t, ofWatches, "2.0.0", 2), "https://b.example/mcp"))
	hide := func(v, by string) {
		t.Helper()
		err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
			if _, err := s.Writer.Lock(ctx, name(t, ofWatches)); err != nil {
				return err
			}
			q := registry.Quarantined{Name: name(t, ofWatches), Reason: "r", Since: hour(3), By: registry.Holder(by)}
			if v != "" {
				q.Version = version(t, v)
			}
			err := s.Quarantine.Add(ctx, q, nil)
			if err == nil && v != "" {
				hidden := release(t, ofWatches, v, map[string]int{"1.0.0": 1, "2.0.0": 2}[v])
				hidden.Status = registry.StatusDeleted
				err = s.Writer.Save(ctx, []registrystore.Change{state(hidden)})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	hide("1.0.0", tools.Service)
	hide("2.0.0", "rita")
	s.refresh(t, hour(4))
	s.require(t, "https://a.example/mcp")
	if w, ok := s.claim(t, "h", hour(4)); !ok || len(w.Versions) != 1 {
		t.Errorf("the watch is %+v, %t", w, ok)
	}
	hide("", "rita")
	s.refresh(t, hour(5))
	s.require(t, "")
}

func keepsWatches(t *testing.T, s ToolWatchStores) {
	t.Helper()
	s.publish(t, published(release(t, ofWatches, "1.0.0", 1), "https://a.example/mcp"))
	s.refresh(t, hour(2))
	w, _ := s.claim(t, "h", hour(2))
	w.NextAt, w.Failures, w.Since, w.Problem = hour(3), 2, hour(1), "it is away"
	w.Seen, w.Unstable, w.Received, w.NotifiedAt = []tools.Mark{"aa", "bb"}, true, "cc", hour(2)
	if err := s.Watches.Save(t.Context(), w, "another"); !fault.Is(err, fault.Conflict) {
		t.Errorf("Save of another holder: %v", err)
	}
	if err := s.Watches.Save(t.Context(), w, "h"); err != nil {
		t.Fatal(err)
	}
	if err := s.Watches.Save(t.Context(), w, "h"); !fault.Is(err, fault.Conflict) {
		t.Errorf("Save after the lease: %v", err)
	}
	versions := w.Versions
	w.Versions = nil
	if all := s.require(t, "https://a.example/mcp"); !reflect.DeepEqual(all[0], w) {
		t.Errorf("Of returns %+v, want %+v", all[0], w)
	}
	if _, ok := s.claim(t, "h", hour(3).Add(-time.Second)); ok {
		t.Error("a watch that is not due is claimed")
	}
	w.Versions = versions
	if got, ok := s.claim(t, "h", hour(3)); !ok || !reflect.DeepEqual(got, w) {
		t.Errorf("Claim returns %+v, want %+v", got, w)
	}
}

func leasesWatches(t *testing.T, s ToolWatchStores) {
	t.Helper()
	s.publish(t, published(release(t, ofWatches, "1.0.0", 1), "https://a.example/mcp", "https://b.example/mcp", "https://c.example/mcp"))
	s.refresh(t, hour(2))
	first, ok := s.claim(t, "h", hour(2))
	second, also := s.claim(t, "h", hour(2))
	if !ok || !also || first.Remote == second.Remote {
		t.Fatalf("the first claims are %+v and %+v", first, second)
	}
	if w, ok := s.claim(t, "i", hour(2)); ok {
		t.Errorf("%+v is claimed as the third of two", w)
	}
	if w, ok := s.claim(t, "i", hour(2).Add(time.Minute)); !ok || w.Remote != first.Remote {
		t.Errorf("after the leases %+v, %t is claimed", w, ok)
	}
	if err := s.Watches.Save(t.Context(), first, "h"); !fault.Is(err, fault.Conflict) {
		t.Errorf("Save of who had the lease: %v", err)
	}
}

func claimsRemote(t *testing.T, s ToolWatchStores) {
	t.Helper()
	s.publish(t, published(release(t, ofWatches, "1.0.0", 1), "https://a.example/mcp"))
	long := registry.RemoteURL("https://b.example/" + strings.Repeat("x", 1000))
	for _, remote := range []registry.RemoteURL{"https://a.example/mcp", "https://other.example/mcp", long} {
		claim := func(holder string) (tools.Watch, bool) {
			w, ok, err := s.Watches.Claim(t.Context(), registrystore.WatchClaim{
				Lease: registrystore.Lease{Holder: holder, Now: hour(2), Until: hour(3)}, Name: name(t, ofWatches), Remote: remote,
			})
			if err != nil {
				t.Fatal(err)
			}
			return w, ok
		}
		w, ok := claim("h")
		if !ok || w.Remote != remote || (len(w.Versions) == 1) != (remote == "https://a.example/mcp") {
			t.Errorf("%.40s: %+v, %t", remote, w, ok)
		}
		if w, ok := claim("i"); ok {
			t.Errorf("a second holder gets %+v", w)
		}
		w.NextAt = hour(9)
		if err := s.Watches.Save(t.Context(), w, "h"); err != nil {
			t.Errorf("%.40s: %v", remote, err)
		}
		if w, ok := claim("i"); !ok || !w.NextAt.Equal(hour(9)) {
			t.Errorf("afterwards %+v, %t", w, ok)
		}
	}
	s.refresh(t, hour(4))
	s.require(t, "https://a.example/mcp")
}

func forgetsClockAhead(t *testing.T, s ToolWatchStores) {
	t.Helper()
	s.publish(t, published(release(t, ofWatches, "1.0.0", 1), "https://a.example/mcp"))
	next := func(change func(*tools.Watch)) time.Time {
		t.Helper()
		w, ok, err := s.Watches.Claim(t.Context(), registrystore.WatchClaim{
			Lease: registrystore.Lease{Holder: "h", Now: hour(2), Until: hour(3)}, Name: name(t, ofWatches), Remote: "https://a.example/mcp",
		})
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		change(&w)
		if err := s.Watches.Save(t.Context(), w, "h"); err != nil {
			t.Fatal(err)
		}
		s.refresh(t, hour(2))
		return s.require(t, "https://a.example/mcp")[0].NextAt
	}
	if at := next(func(w *tools.Watch) { w.NextAt = hour(3) }); !at.Equal(hour(3)) {
		t.Errorf("the next question is at %s", at)
	}
	if at := next(func(w *tools.Watch) { w.NextAt = hour(4) }); !at.Equal(hour(2)) {
		t.Errorf("after a clock that was ahead the next question is at %s", at)
	}
	if at := next(func(w *tools.Watch) { w.NextAt, w.Failures = hour(20), 5 }); !at.Equal(hour(20)) {
		t.Errorf("of a remote that is away the next question is at %s", at)
	}
	if at := next(func(w *tools.Watch) { w.NextAt = hour(40) }); !at.Equal(hour(2)) {
		t.Errorf("of a remote that is away, after a clock that was ahead, the next question is at %s", at)
	}
	ahead := registrystore.Lease{Holder: "ahead", Now: hour(2), Until: hour(50)}
	if _, ok, err := s.Watches.Claim(t.Context(), registrystore.WatchClaim{Lease: ahead, Most: 2}); err != nil || !ok {
		t.Fatal(err, ok)
	}
	if _, ok := s.claim(t, "h", hour(3)); !ok {
		t.Error("a lease of a clock that was ahead keeps others from the watch")
	}
}

func claimsInParallel(t *testing.T, s ToolWatchStores) {
	t.Helper()
	remotes := make([]registry.RemoteURL, 8)
	for i := range remotes {
		remotes[i] = registry.RemoteURL(fmt.Sprintf("https://%d.example/mcp", i))
	}
	s.publish(t, published(release(t, ofWatches, "1.0.0", 1), remotes...))
	s.refresh(t, hour(2))
	var group sync.WaitGroup
	var claimed sync.Map
	var count atomic.Int32
	for i := range 8 {
		group.Go(func() {
			for range 4 {
				c := registrystore.WatchClaim{Lease: registrystore.Lease{Holder: fmt.Sprint(i), Now: hour(2), Until: hour(3)}, Most: 4}
				var w tools.Watch
				var ok bool
				err := s.Runner.Atomically(transaction.Exclusive(t.Context()), func(ctx context.Context) (err error) {
					w, ok, err = s.Watches.Claim(ctx, c)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				if _, twice := claimed.LoadOrStore(w.Remote, true); ok && twice {
					t.Errorf("%s is claimed twice", w.Remote)
				}
				if ok {
					count.Add(1)
				}
			}
		})
	}
	group.Wait()
	if count.Load() != 4 {
		t.Errorf("%d are claimed, want 4", count.Load())
	}
}

func countsChanged(t *testing.T, s ToolWatchStores) {
	t.Helper()
	lists := ToolListStores{Lists: s.Lists, Writer: s.Writer, Runner: s.Runner}
	asked := func(part string, state tools.State) tools.Stored {
		l := stored(t, part, state, "t"+part)
		l.Source = tools.Asked
		return l
	}
	for _, step := range []struct {
		put  tools.Stored
		want int
	}{
		{asked("1", tools.Approved), 0}, {asked("1", tools.Pending), 0}, {asked("2", tools.Rejected), 0},
		{stored(t, "3", tools.Differs, "r"), 0}, {asked("1", tools.Differs), 1}, {asked("4", tools.Unstable), 1},
	} {
		lists.put(t, step.put)
		if n, err := s.Watches.CountChanged(t.Context()); err != nil || n != step.want {
			t.Errorf("with a list that is %s: %d, %v, want %d", step.put.State, n, err, step.want)
		}
	}
}

func refusesCanceledWatches(t *testing.T, s ToolWatchStores) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, claimed := s.Watches.Claim(ctx, registrystore.WatchClaim{Most: 1})
	_, of := s.Watches.Of(ctx, name(t, ofWatches))
	_, counted := s.Watches.CountChanged(ctx)
	for call, err := range map[string]error{
		"Refresh": s.Watches.Refresh(ctx, hour(1), time.Hour), "Claim": claimed, "Of": of, "CountChanged": counted,
		"Save": s.Watches.Save(ctx, tools.Watch{Name: name(t, ofWatches)}, "h"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v", call, err)
		}
	}
}
