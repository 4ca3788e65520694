package registryrecords_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// listingSite is a registry with what an instance knows of its listings.
type listingSite struct {
	registryrecords.Stores

	t        *testing.T
	db       *relationaltest.Database
	at       time.Time
	known    map[string]access.Listing
	position string
}

func newListingSite(t *testing.T, db *relationaltest.Database) *listingSite {
	s := &listingSite{Stores: newStores(db), t: t, db: db, at: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	s.known = s.all()
	_, s.position, _ = s.changed("")
	return s
}

// all returns all listings, read page by page.
func (s *listingSite) all() map[string]access.Listing {
	s.t.Helper()
	all := map[string]access.Listing{}
	for after := ""; ; {
		page, next, err := s.Listings.Page(s.t.Context(), after)
		must.Succeed(s.t, err)
		for _, l := range page {
			if l.Name.String() <= after {
				s.t.Errorf("%s comes after %s", l.Name, after)
			}
			all[l.Name.String()] = l
		}
		if after = next; after == "" {
			return all
		}
	}
}

func (s *listingSite) changed(after string) (names []string, position string, known bool) {
	s.t.Helper()
	c, err := s.Listings.Changed(s.t.Context(), after)
	must.Succeed(s.t, err)
	return c.Names, c.Position, c.Known
}

// follow reads what has changed, and returns the names.
func (s *listingSite) follow() []string {
	s.t.Helper()
	names, position, known := s.changed(s.position)
	if !known {
		s.t.Errorf("the position %q is not known", s.position)
	}
	s.position = position
	for part := range slices.Chunk(names, accessstore.MaxNames) {
		listings, err := s.Listings.Named(s.t.Context(), part)
		must.Succeed(s.t, err)
		for _, l := range listings {
			if s.known[l.Name.String()] = l; reflect.DeepEqual(l, access.Listing{Name: l.Name, Deleted: true}) {
				delete(s.known, l.Name.String())
			}
		}
	}
	return names
}

var siteNames = []string{"com.example/a", "com.example/B", "com.example/b", "org.example/x"}

// naive returns the listings by the documents of all versions.
func (s *listingSite) naive() map[string]access.Listing {
	s.t.Helper()
	all := map[string]access.Listing{}
	found, err := s.Reader.List(s.t.Context(), registrystore.Query{Limit: 1000, Deleted: true})
	must.Succeed(s.t, err)
	listed := map[string]bool{}
	for _, r := range found.Records {
		l := all[r.Name.String()]
		l.Name = r.Name
		for _, url := range registry.RemotesOf(r.Document) {
			u := string(url)
			switch {
			case r.Status != registry.StatusDeleted && !slices.Contains(l.Remotes, u):
				l.Remotes = append(l.Remotes, u)
			case r.Status == registry.StatusDeleted && !slices.Contains(l.Withdrawn, u):
				l.Withdrawn = append(l.Withdrawn, u)
			}
		}
		if r.Status != registry.StatusDeleted {
			l.Tools = append(l.Tools, s.naiveTools(r)...)
		}
		listed[r.Name.String()] = listed[r.Name.String()] || r.Status != registry.StatusDeleted
		all[r.Name.String()] = l
	}
	for _, name := range siteNames {
		l := all[name]
		l.Name = parse(s.t, registry.ParseName, name)
		slices.SortStableFunc(l.Tools, func(a, b access.ToolList) int { return strings.Compare(a.Version, b.Version) })
		if !slices.ContainsFunc(l.Tools, func(l access.ToolList) bool { return l.Approved }) {
			l.Tools = nil
		}
		l.Withdrawn = slices.DeleteFunc(l.Withdrawn, func(u string) bool { return slices.Contains(l.Remotes, u) })
		if len(l.Withdrawn) == 0 {
			l.Withdrawn = nil
		}
		slices.Sort(l.Remotes)
		slices.Sort(l.Withdrawn)
		entries, err := s.Quarantine.Entries(s.t.Context(), l.Name)
		must.Succeed(s.t, err)
		l.Quarantined = !listed[name] && len(entries) > 0
		if l.Deleted = !listed[name] && len(entries) == 0; l.Deleted && len(l.Withdrawn) == 0 {
			delete(all, name)
			continue
		}
		all[name] = l
	}
	return all
}

// naiveTools returns the lists of a version by all that is stored of them.
func (s *listingSite) naiveTools(r registry.Record) (all []access.ToolList) {
	s.t.Helper()
	stored, err := s.ToolLists.OfVersion(s.t.Context(), r.Name, r.Version)
	must.Succeed(s.t, err)
	parts := tools.PartsOf(r.Document)
	for _, one := range stored {
		i := slices.IndexFunc(parts, func(p tools.Part) bool { return p.Key == one.Part })
		if i < 0 || one.State == tools.Pending {
			continue
		}
		l := access.ToolList{
			ListName: access.ListName{Version: r.Version.String(), Place: parts[i].String(), At: one.At},
			Part:     string(one.Part) + " " + string(one.Source), Approved: one.State == tools.Approved,
		}
		for _, t := range one.List.Tools {
			encoded, err := json.Marshal(t.Fields())
			must.Succeed(s.t, err)
			mark, err := tools.MarkOf(encoded, t.Name)
			must.Succeed(s.t, err)
			traits := toolserver.DefaultTraits
			if readOnly, _ := t.Says(tools.ReadOnly); readOnly {
				traits = toolserver.ReadOnly | toolserver.OpenWorld
			}
			l.Tools = append(l.Tools, toolserver.Tool{Name: t.Name, Mark: mark, Traits: traits})
		}
		all = append(all, l)
	}
	return all
}

// list makes a random change of the tool lists of a version.
func (s *listingSite) list(r *rand.Rand, name registry.Name, version registry.Version) {
	part, err := tools.FindPart([]byte(`{"remotes":[{"type":"sse","url":"https://a.example/mcp"}],"packages":[{"identifier":"x"}]}`),
		tools.Place{Remote: []string{"https://a.example/mcp", ""}[r.IntN(2)]})
	must.Succeed(s.t, err)
	content := fmt.Sprintf(`{"tools":[{"name":"t%d","description":"%d"},{"name":"r","annotations":{"readOnlyHint":true}}]}`, r.IntN(3), r.IntN(2))
	l, err := tools.Parse([]byte(content))
	must.Succeed(s.t, err)
	state := []tools.State{tools.Approved, tools.Differs, tools.Pending}[r.IntN(3)]
	s.at = s.at.Add(time.Millisecond)
	one := tools.Stored{Name: name, Version: version, Part: part.Key, Source: tools.Recorded, State: state, At: s.at, List: l}
	err = s.db.Atomically(s.t.Context(), func(ctx context.Context) error {
		releases, err := s.Writer.Lock(ctx, name)
		if err != nil || !slices.ContainsFunc(releases, func(r registry.Release) bool { return r.Version == version }) {
			return err
		}
		if r.IntN(4) == 0 {
			if err := s.ToolLists.Withdraw(ctx, one); !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		return s.ToolLists.Put(ctx, one)
	})
	must.Succeed(s.t, err)
	switch r.IntN(6) { // as a row from before the column, or of a program from before it
	case 0:
		must.Succeed(s.t, s.db.Execute(s.t.Context(), "UPDATE tool_lists SET outline = NULL WHERE name = '"+name.String()+"'"))
	case 1:
		other := fmt.Sprintf(`{"tools":[{"name":"old%d"}]}`, r.IntN(3))
		must.Succeed(s.t, s.db.Execute(s.t.Context(), "UPDATE tool_lists SET content = '"+other+"' WHERE name = '"+name.String()+"'"))
	}
}

// save stores a version with addresses and a status.
func (s *listingSite) save(ctx context.Context, name registry.Name, version string, status registry.Status, urls ...string) error {
	s.at = s.at.Add(time.Millisecond)
	text := make([]string, len(urls))
	c := registrystore.Change{}
	for i, u := range urls {
		text[i] = fmt.Sprintf(`{"type":"streamable-http","url":%q}`, u)
		c.Remotes = append(c.Remotes, registry.RemoteURL(u))
	}
	c.Document = []byte(`{"packages":[{"identifier":"x"}],"remotes":[` + strings.Join(text, ",") + "]}")
	return s.db.Atomically(ctx, func(ctx context.Context) error {
		releases, err := s.Writer.Lock(ctx, name)
		if err != nil {
			return err
		}
		v := parse(s.t, registry.ParseVersion, version)
		c.Release = registry.Release{Name: name, Version: v, PublishedAt: s.at}
		for _, stored := range releases {
			if stored.Version == v {
				c.Release = stored
			}
		}
		c.Release.Status, c.Release.StatusChangedAt, c.Release.UpdatedAt = status, s.at, s.at
		return s.Writer.Save(ctx, []registrystore.Change{c})
	})
}

// step makes a random change.
func (s *listingSite) step(r *rand.Rand) {
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	name := parse(s.t, registry.ParseName, one(siteNames...))
	version := one("1.0.0", "1.0.1", "2.0.0")
	ctx := s.t.Context()
	entries, err := s.Quarantine.Entries(ctx, name)
	must.Succeed(s.t, err)
	switch r.IntN(12) {
	case 0: // also of a server that is deleted already
		if len(entries) == 0 {
			must.Succeed(s.t, s.db.Atomically(ctx, func(ctx context.Context) error {
				_, err := s.Writer.Lock(ctx, name)
				return err
			}))
			must.Succeed(s.t, s.db.Execute(ctx, "UPDATE versions SET status = 'deleted' WHERE name = '"+name.String()+"'"))
			must.Succeed(s.t, s.Quarantine.Add(ctx, registry.Quarantined{Name: name, Reason: "r", Since: s.at}, nil))
		}
	case 1:
		if len(entries) > 0 {
			must.Succeed(s.t, s.Quarantine.Remove(ctx, name, registry.Version{}, nil))
		}
	case 2:
		where := " WHERE name = '" + name.String() + "' AND version = '" + version + "'"
		must.Succeed(s.t, s.db.Execute(ctx, "DELETE FROM remotes"+where))
		must.Succeed(s.t, s.db.Execute(ctx, "DELETE FROM versions"+where))
	case 3, 4, 5, 6:
		s.list(r, name, parse(s.t, registry.ParseVersion, version))
	default:
		status := registry.Status(one("active", "deprecated", "deleted"))
		if len(entries) > 0 {
			status = registry.StatusDeleted
		}
		var urls []string
		for range r.IntN(3) {
			urls = append(urls, one("https://a.example/mcp", "https://b.example/", "https://c.example/x", "https://long.example/"+strings.Repeat("x", 1200)))
		}
		must.Succeed(s.t, s.save(ctx, name, version, status, urls...))
	}
}

// TestListingsOfChanges: what an instance knows by reading what has changed is what the documents of all
// versions say, whatever has changed, and by whatever program.
func TestListingsOfChanges(t *testing.T) {
	t.Parallel()
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		s := newListingSite(t, db)
		seed := uint64(time.Now().UnixNano())
		r := rand.New(rand.NewPCG(seed, 3))
		for step := range 60 {
			for range r.IntN(4) {
				s.step(r)
			}
			s.follow()
			if want := s.naive(); !reflect.DeepEqual(s.known, want) {
				t.Fatalf("seed %d, step %d: known is\n%+v\nwant\n%+v", seed, step, s.known, want)
			}
			if all := s.all(); !reflect.DeepEqual(without(all), without(s.known)) {
				t.Fatalf("seed %d, step %d: all are\n%+v\nknown is\n%+v", seed, step, all, s.known)
			}
		}
	})
}

// without returns listings without those of which nothing is known.
func without(all map[string]access.Listing) map[string]access.Listing {
	found := map[string]access.Listing{}
	for name, l := range all {
		if !l.Deleted || len(l.Withdrawn) > 0 {
			found[name] = l
		}
	}
	return found
}

// TestPositions: a position has what its snapshot has seen. Servers from which something was taken come
// first, and a change is found once.
func TestPositions(t *testing.T) {
	t.Parallel()
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		s := newListingSite(t, db)
		name := func(n string) registry.Name { return parse(t, registry.ParseName, "com.example/"+n) }
		want := func(what string, names ...string) {
			t.Helper()
			if got := s.follow(); !slices.Equal(got, names) {
				t.Errorf("%s: %v has changed, want %v", what, got, names)
			}
		}
		want("nothing")
		for _, n := range []string{"a", "b", "c"} {
			must.Succeed(t, s.save(t.Context(), name(n), "1.0.0", registry.StatusActive))
		}
		must.Succeed(t, s.save(t.Context(), name("c"), "2.0.0", registry.StatusDeleted))
		want("three servers, one with a deleted version", "com.example/c", "com.example/a", "com.example/b")
		want("nothing more")
		_, place, _ := strings.Cut(s.position, "\n")
		must.Succeed(t, s.save(t.Context(), name("b"), "1.0.1", registry.StatusActive))
		if names, _, known := s.changed("elsewhere\n" + place); known || !slices.Equal(names, []string{"com.example/b"}) {
			t.Errorf("at a position of another database %v has changed, known %v", names, known)
		}
		want("one more", "com.example/b")
		if db.Kind() != relationaltest.PostgreSQL {
			return
		}
		// A transaction that began before a read and ends after it, while another one goes on.
		stored, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			ended <- db.Atomically(context.WithoutCancel(t.Context()), func(ctx context.Context) error {
				err := s.save(ctx, name("late"), "1.0.0", registry.StatusActive)
				close(stored)
				<-end
				return err
			})
		}()
		<-stored
		must.Succeed(t, s.save(t.Context(), name("a"), "1.0.1", registry.StatusActive))
		want("while a transaction goes on", "com.example/a")
		want("likewise")
		close(end)
		must.Succeed(t, <-ended)
		want("after it", "com.example/late")
		want("at last")
	})
}

// TestChangedListingsUseIndexes: what has changed is found, and read, without a look at all servers.
func TestChangedListingsUseIndexes(t *testing.T) {
	t.Parallel()
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		first := newListingSite(t, db)
		db.Fill(t, insertQuarantine(db.Kind(), 5000)...)
		if n := len(first.follow()); n != 5000 {
			t.Errorf("%d of 5000 servers have changed", n)
		}
		db.Fill(t, "INSERT INTO remotes (name, version, url) SELECT name, version, 'https://' || name FROM versions")
		db.Fill(t, "INSERT INTO tool_lists (name, version, part, source, approved, state, sent_at, sender, policy, makers, content) "+
			"SELECT name, version, '00', 'recorded', "+map[bool]string{true: "true, 'approved', now()", false: "1, 'approved', 0"}[db.Kind() == relationaltest.PostgreSQL]+
			", '', '', '[]', '{\"tools\":[]}' FROM versions")
		db.Fill(t, "UPDATE server_changes SET changed_in = 3") // before any transaction of others that goes on
		db.Fill(t, "ANALYZE server_changes", "ANALYZE versions", "ANALYZE remotes", "ANALYZE tool_lists")
		s := newListingSite(t, db)
		must.Succeed(t, s.save(t.Context(), parse(t, registry.ParseName, "com.example/s7"), "2.0.0", registry.StatusActive))
		plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
			c, err := s.Listings.Changed(ctx, s.position)
			if err != nil || !slices.Equal(c.Names, []string{"com.example/s7"}) {
				t.Errorf("%v has changed, error %v", c.Names, err)
			}
			_, err = s.Listings.Named(ctx, c.Names)
			return err
		})
		must.Succeed(t, err)
		if len(plans) < 2 {
			t.Fatalf("the plans are %v", plans)
		}
		for query, plan := range plans {
			for _, table := range []string{"versions", "quarantine", "server_changes", "remotes", "tool_lists"} {
				if strings.Contains(plan, "Seq Scan on "+table) || strings.Contains(plan, "SCAN "+table+"\n") {
					t.Errorf("%s reads all of %s:\n%s", query, table, plan)
				}
			}
		}
	})
}

// TestCalls: two instances add calls of a day at once; a week is the sum of its days, and what is older than eight days
// is gone.
func TestCalls(t *testing.T) {
	t.Parallel()
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			one, other := newStores(db).Listings, newStores(db.OpenAgain(t)).Listings
			const today = 20_000
			var all []accessstore.Calls
			for i := range accessstore.MaxNames {
				all = append(all, accessstore.Calls{Server: fmt.Sprintf("com.example/s%03d", i), All: int64(i), Denied: 1})
			}
			var both sync.WaitGroup
			for _, s := range []accessstore.Servers{one, other} {
				both.Go(func() {
					for range 5 {
						if err := s.AddCalls(t.Context(), today, all); err != nil {
							t.Error(err)
						}
					}
				})
			}
			both.Wait()
			want := func(server string, from, calls, denied int64) {
				t.Helper()
				if got, err := other.CallsOf(t.Context(), server, from); err != nil || got != (accessstore.Calls{Server: server, All: calls, Denied: denied}) {
					t.Errorf("%s since %d: %+v, %v, want %d and %d", server, from, got, err, calls, denied)
				}
			}
			want("com.example/s007", today, 70, 10)
			want("com.example/none", today, 0, 0)
			for _, day := range []int64{today - 6, today + 1, today + 1, today - 5} {
				must.Succeed(t, one.AddCalls(t.Context(), day, []accessstore.Calls{{Server: "com.example/s007", All: 1}}))
			}
			want("com.example/s007", today-6, 74, 10)
			want("com.example/s007", today-5, 73, 10)
			must.Succeed(t, one.AddCalls(t.Context(), today, nil))
			must.Succeed(t, one.AddCalls(t.Context(), today+3, all[:1]))
			want("com.example/s007", today-6, 72, 10) // the days before are gone
			want("com.example/s007", today+2, 0, 0)
			ended, end := context.WithCancel(t.Context())
			end()
			if err := one.AddCalls(ended, today, all); err == nil {
				t.Error("calls are stored after the end of the context")
			}
		})
	}
}

// TestOwners: who answers for servers is read of one and of all.
func TestOwners(t *testing.T) {
	t.Parallel()
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			s := newListingSite(t, db)
			name := parse(t, registry.ParseName, "com.example/a")
			must.Succeed(t, s.save(t.Context(), name, "1.0.0", registry.StatusActive))
			for _, o := range []registry.Owner{{Team: "A"}, {Team: "B", Contact: "b@example.com"}, {}} {
				must.Succeed(t, s.Owners.Set(t.Context(), name, o))
				all, err := s.Owners.All(t.Context())
				if got, found := all[name.String()]; err != nil || got != o || found != (o != registry.Owner{}) || len(all) > 1 {
					t.Errorf("all are %v, %v, want %v", all, err, o)
				}
			}
		})
	}
}
