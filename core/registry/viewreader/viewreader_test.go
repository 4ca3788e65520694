package viewreader_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewreader"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var epoch = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// drawRegistry stores servers with versions of all statuses, and returns all releases.
func drawRegistry(t *testing.T, rt *rapid.T) (*fakedb.Servers, []registry.Release) {
	t.Helper()
	db := fakedb.New()
	servers := fakedb.NewServers(db, false)
	now := epoch
	var all []registry.Release
	for _, s := range rapid.SliceOfNDistinct(rapid.StringMatching(`com\.[ab]/[ab]`), 1, 4, rapid.ID[string]).
		Draw(rt, "servers") {
		name, err := registry.ParseName(s)
		must.Succeed(rt, err)
		l := registry.NewLineage(name, nil)
		for _, text := range rapid.SliceOfNDistinct(rapid.StringMatching(`[0-2]\.[01]\.0|draft`), 1, 5,
			rapid.ID[string]).Draw(rt, "versions") {
			version, err := registry.ParseVersion(text)
			must.Succeed(rt, err)
			now = now.Add(time.Minute)
			if _, err := l.Publish(version, now); err != nil {
				rt.Fatal(err)
			}
			status := rapid.SampledFrom([]registry.Status{
				registry.StatusActive, registry.StatusDeprecated, registry.StatusDeleted,
			}).Draw(rt, "status")
			update, err := registry.NewStatusUpdate(status, "")
			must.Succeed(rt, err)
			now = now.Add(time.Minute)
			if _, err := l.SetStatus(version, update, now); err != nil && status != registry.StatusActive {
				rt.Fatal(err)
			}
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{Release: r, Document: []byte("{}")})
			all = append(all, r)
		}
		err = db.Atomically(context.Background(), func(ctx context.Context) error {
			if _, err := servers.Lock(ctx, name); err != nil {
				return err
			}
			return servers.Save(ctx, changes)
		})
		must.Succeed(rt, err)
	}
	return servers, all
}

// shownIn returns the releases of a view with the latest flags that they have there, by the words
// of the contract: each server without its hidden versions.
func shownIn(v view.View, all []registry.Release) []registry.Release {
	byName := map[registry.Name][]registry.Release{}
	for _, r := range all {
		if v.Includes(r.Name) && (v.Deprecated != view.Hide || r.Status != registry.StatusDeprecated) {
			byName[r.Name] = append(byName[r.Name], r)
		}
	}
	var shown []registry.Release
	for _, of := range byName {
		for i := range of {
			highest, _ := registry.HighestRanked(of)
			of[i].Latest = highest.Version == of[i].Version
		}
		shown = append(shown, of...)
	}
	slices.SortFunc(shown, func(a, b registry.Release) int {
		return strings.Compare(a.Name.String()+" "+a.Version.String(), b.Name.String()+" "+b.Version.String())
	})
	return shown
}

// withHidden returns the releases that a view shows and those that it hides, which have the status
// deleted.
func withHidden(v view.View, all, shown []registry.Release) []registry.Release {
	listed := slices.Clone(shown)
	for _, r := range all {
		if v.Includes(r.Name) && v.Hides(r.Status) {
			r.Status, r.Latest = registry.StatusDeleted, false
			listed = append(listed, r)
		}
	}
	slices.SortFunc(listed, func(a, b registry.Release) int {
		return strings.Compare(a.Name.String()+" "+a.Version.String(), b.Name.String()+" "+b.Version.String())
	})
	return listed
}

func drawView(rt *rapid.T) view.View {
	pattern := rapid.SampledFrom([]string{"*", "com.a/*", "com.b/*", "com.a/a", "com.b/b", "com.a/b"})
	v, err := view.New(view.Draft{
		Name: "team", Include: rapid.SliceOfN(pattern, 0, 2).Draw(rt, "include"),
		Exclude:    rapid.SliceOfN(rapid.SampledFrom([]string{"com.a/a", "com.b/*"}), 0, 1).Draw(rt, "exclude"),
		Deprecated: rapid.SampledFrom([]string{"show", "hide", "hide"}).Draw(rt, "deprecated"),
	})
	must.Succeed(rt, err)
	return v
}

func texts(releases []registry.Release) []string {
	all := []string{}
	for _, r := range releases {
		all = append(all, fmt.Sprintf("%s@%s %s %t", r.Name, r.Version, r.Status, r.Latest))
	}
	return all
}

// TestLists: the pages of each query have what the view shows, each once, with its latest flags.
func TestLists(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		servers, all := drawRegistry(t, rt)
		v := drawView(rt)
		reader := viewreader.New(servers, v)
		q := registrystore.Query{
			Limit: rapid.IntRange(1, 5).Draw(rt, "limit"), Bytes: rapid.SampledFrom([]int{0, 3, 5}).Draw(rt, "bytes"),
			LatestOnly: rapid.Bool().Draw(rt, "latest"), Deleted: rapid.Bool().Draw(rt, "deleted"),
			Search: rapid.SampledFrom([]string{"", "com.a"}).Draw(rt, "search"),
		}
		if rapid.Bool().Draw(rt, "since") {
			q.UpdatedSince = epoch.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "minutes")) * time.Minute)
		}
		listed := shownIn(v, all)
		if q.Deleted && !q.UpdatedSince.IsZero() {
			listed = withHidden(v, all, listed)
		}
		var want []registry.Release
		for _, r := range listed {
			if (!q.LatestOnly || r.Latest) && (q.Deleted || r.Status != registry.StatusDeleted) &&
				strings.Contains(r.Name.String(), q.Search) && r.UpdatedAt.After(q.UpdatedSince) {
				want = append(want, r)
			}
		}
		var got []registry.Release
		for pages := 0; ; pages++ {
			p, err := reader.List(t.Context(), q)
			if err != nil || pages > 30 || len(p.Records) > q.Limit {
				rt.Fatalf("page %d has %d records, %v", pages, len(p.Records), err)
			}
			for _, r := range p.Records {
				got = append(got, r.Release)
			}
			if !p.More {
				break
			}
			q.AfterName, q.AfterVersion = p.End()
		}
		if !slices.Equal(texts(got), texts(want)) {
			rt.Fatalf("%+v in %+v has\n%q, want\n%q", q, v, texts(got), texts(want))
		}
	})
}

// TestServers: the versions of one server, one version and the latest are those that the view
// shows.
func TestServers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		servers, all := drawRegistry(t, rt)
		v := drawView(rt)
		reader, shown := viewreader.New(servers, v), shownIn(v, all)
		deleted := rapid.Bool().Draw(rt, "deleted")
		shown = slices.DeleteFunc(shown, func(r registry.Release) bool {
			return !deleted && r.Status == registry.StatusDeleted
		})
		for _, r := range all {
			of := slices.DeleteFunc(slices.Clone(shown), func(o registry.Release) bool { return o.Name != r.Name })
			slices.SortFunc(of, func(a, b registry.Release) int { return b.PublishedAt.Compare(a.PublishedAt) })
			p, err := reader.Versions(t.Context(), registrystore.VersionsQuery{Name: r.Name, Deleted: deleted})
			var got, outline []registry.Release
			for _, record := range p.Records {
				got = append(got, record.Release)
			}
			if err != nil || !slices.Equal(texts(got), texts(of)) {
				rt.Fatalf("Versions has %q, %v, want %q", texts(got), err, texts(of))
			}
			editions, err := reader.Outline(t.Context(), r.Name, deleted)
			for _, e := range editions {
				outline = append(outline, e.Release)
			}
			if err != nil || !slices.Equal(texts(outline), texts(of)) {
				rt.Fatalf("Outline has %q, %v, want %q", texts(outline), err, texts(of))
			}
			one, err := reader.Version(t.Context(), r.Name, r.Version, deleted)
			checkOne(rt, one, err, of, func(o registry.Release) bool { return o.Version == r.Version })
			latest, err := reader.Latest(t.Context(), r.Name, deleted)
			checkOne(rt, latest, err, of, func(o registry.Release) bool { return o.Latest })
		}
	})
}

// checkOne checks that a record is the wanted one of the shown releases, or missing if no release
// is.
func checkOne(
	rt *rapid.T, got registry.Record, err error, shown []registry.Release, wanted func(registry.Release) bool,
) {
	i := slices.IndexFunc(shown, wanted)
	switch {
	case i < 0 && !fault.Is(err, fault.NotFound):
		rt.Fatalf("%v, %v, want fault.NotFound", got.Release, err)
	case i >= 0 && (err != nil || got.Release != shown[i]):
		rt.Fatalf("%v, %v, want %v", got.Release, err, shown[i])
	}
}
