package registrystoretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// QuarantineStores are an empty store of what is in quarantine, with its servers and transactions.
type QuarantineStores struct {
	Quarantine registrystore.Quarantine
	Writer     registrystore.ServerWriter
	Runner     transaction.Runner
}

// RunQuarantine runs the tests of the stores of what is in quarantine. open is called for each
// test.
func RunQuarantine(t *testing.T, open func(t *testing.T) QuarantineStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s QuarantineStores){
		"an empty store has nothing in quarantine":                               hasNothingInQuarantine,
		"the entries of a server are returned as they were stored":               keepsEntries,
		"times are returned in UTC with microseconds":                            truncatesQuarantineTimes,
		"a second entry for the same server or version is refused":               refusesEntryTwice,
		"the status before the first quarantine is kept":                         keepsPriorStatus,
		"the stored prior status can be replaced":                                replacesPriorStatus,
		"a version in quarantine cannot have another status than deleted":        keepsHidden,
		"the people who are responsible for a server are stored":                 keepsResponsible,
		"a removed entry is not returned":                                        removesEntries,
		"the prior statuses of many versions are stored":                         keepsManyPriorStatuses,
		"entries are listed by patterns of names":                                listsByPatterns,
		"entries are listed since a time":                                        listsSince,
		"pages list every entry once":                                            listsEntriesInPages,
		"a failed transaction stores no entry":                                   rollsQuarantineBack,
		"a caller that locks a server sees the entries of all callers before it": quarantinesInParallel,
		"a call with a cancelled context fails":                                  refusesCanceledQuarantine,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// publishServer stores the versions of a server.
func (s QuarantineStores) publishServer(t *testing.T, server string, versions ...string) {
	t.Helper()
	s.inServer(t, server, func(ctx context.Context) error {
		changes := make([]registrystore.Change, len(versions))
		for i, v := range versions {
			changes[i] = published(release(t, server, v, i))
		}
		return s.Writer.Save(ctx, changes)
	})
}

// inServer makes a change in a transaction that has locked the server.
func (s QuarantineStores) inServer(t *testing.T, server string, change func(ctx context.Context) error) {
	t.Helper()
	if err := s.tryInServer(t, server, change); err != nil {
		t.Fatal(err)
	}
}

func (s QuarantineStores) tryInServer(t *testing.T, server string, change func(ctx context.Context) error) error {
	t.Helper()
	of := name(t, server)
	return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := s.Writer.Lock(ctx, of); err != nil {
			return err
		}
		return change(ctx)
	})
}

// newEntry returns an entry of a version, or of a server for an empty version.
func newEntry(t *testing.T, server, v string) registry.Quarantined {
	t.Helper()
	q := registry.Quarantined{Name: name(t, server), Reason: "it is malware:\n\"quoted\" ✓", Since: hour(3), By: "7b0c"}
	if v != "" {
		q.Version = version(t, v)
	}
	return q
}

func (s QuarantineStores) add(t *testing.T, q registry.Quarantined, prior ...registry.PriorStatus) {
	t.Helper()
	s.inServer(t, q.Name.String(), func(ctx context.Context) error { return s.Quarantine.Add(ctx, q, prior) })
}

func newPrior(t *testing.T, v string) registry.PriorStatus {
	t.Helper()
	return registry.PriorStatus{
		Version: version(t, v), Status: registry.StatusDeprecated, Message: "use 2 ✓", ChangedAt: hour(2),
	}
}

// requireServer checks what is stored of a server.
func (s QuarantineStores) requireServer(
	t *testing.T, server string, entries []registry.Quarantined, prior []registry.PriorStatus,
) {
	t.Helper()
	gotEntries, err := s.Quarantine.Entries(t.Context(), name(t, server))
	if err != nil || !equalLists(gotEntries, entries) {
		t.Errorf("Entries of %s =\n%+v, %v, want\n%+v", server, gotEntries, err, entries)
	}
	gotPrior, err := s.Quarantine.PriorStatuses(t.Context(), name(t, server))
	if err != nil || !equalLists(gotPrior, prior) {
		t.Errorf("PriorStatuses of %s =\n%+v, %v, want\n%+v", server, gotPrior, err, prior)
	}
}

func equalLists[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// requireList checks the entries that patterns select.
func (s QuarantineStores) requireList(t *testing.T, q registrystore.QuarantineQuery, want ...registry.Quarantined) {
	t.Helper()
	got, err := s.Quarantine.List(t.Context(), q)
	if err != nil || !equalLists(got, want) {
		t.Errorf("List(%+v) =\n%+v, %v, want\n%+v", q, got, err, want)
	}
}

func everything(t *testing.T) []registry.Pattern {
	t.Helper()
	return []registry.Pattern{must(t, registry.ParsePattern, "*")}
}

func hasNothingInQuarantine(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0")
	s.requireServer(t, "com.example/a", nil, nil)
	s.requireServer(t, "com.example/missing", nil, nil)
	s.requireList(t, registrystore.QuarantineQuery{Patterns: everything(t), Limit: 5})
	for _, v := range []registry.Version{{}, version(t, "1.0.0")} {
		err := s.tryInServer(t, "com.example/a", func(ctx context.Context) error {
			return s.Quarantine.Remove(ctx, name(t, "com.example/a"), v, nil)
		})
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("Remove of %q in an empty store: %v, want fault.NotFound", v, err)
		}
	}
}

func keepsEntries(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0", "2.0.0")
	s.publishServer(t, "com.example/b", "1.0.0")
	one, whole, other := newEntry(t, "com.example/a", "2.0.0"), newEntry(t, "com.example/a", ""),
		newEntry(t, "com.example/b", "1.0.0")
	whole.By, whole.Reason = "", "another"
	deleted := registry.PriorStatus{Version: version(t, "1.0.0"), Status: registry.StatusDeleted, ChangedAt: hour(1)}
	s.add(t, one, newPrior(t, "2.0.0"))
	s.add(t, whole, deleted)
	s.add(t, other, newPrior(t, "1.0.0"))
	s.requireServer(t, "com.example/a", []registry.Quarantined{whole, one}, []registry.PriorStatus{
		deleted, newPrior(t, "2.0.0"),
	})
	s.requireServer(t, "com.example/b", []registry.Quarantined{other}, []registry.PriorStatus{newPrior(t, "1.0.0")})
	s.requireList(t, registrystore.QuarantineQuery{Patterns: everything(t), Limit: 5}, whole, one, other)
}

func truncatesQuarantineTimes(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0")
	q, p := newEntry(t, "com.example/a", ""), newPrior(t, "1.0.0")
	given, stored := start.Add(987654321).In(time.FixedZone("", 3*60*60)), start.Add(987654*time.Microsecond)
	q.Since, p.ChangedAt = given, given
	s.add(t, q, p)
	q.Since, p.ChangedAt = stored, stored
	s.requireServer(t, "com.example/a", []registry.Quarantined{q}, []registry.PriorStatus{p})
}

func refusesEntryTwice(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0")
	for _, q := range []registry.Quarantined{newEntry(t, "com.example/a", ""), newEntry(t, "com.example/a", "1.0.0")} {
		s.add(t, q)
		again := q
		again.Reason = "another"
		s.inServer(t, "com.example/a", func(ctx context.Context) error {
			if err := s.Quarantine.Add(ctx, again, []registry.PriorStatus{newPrior(t, "1.0.0")}); !fault.Is(err,
				fault.Conflict) {
				t.Errorf("Add again: %v, want fault.Conflict", err)
			}
			return nil
		})
	}
	s.requireServer(t, "com.example/a", []registry.Quarantined{
		newEntry(t, "com.example/a", ""), newEntry(t, "com.example/a", "1.0.0"),
	}, nil)
}

func keepsPriorStatus(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0")
	one, whole := newEntry(t, "com.example/a", "1.0.0"), newEntry(t, "com.example/a", "")
	s.add(t, one, newPrior(t, "1.0.0"))
	s.add(t, whole, registry.PriorStatus{
		Version: version(t, "1.0.0"), Status: registry.StatusDeleted, ChangedAt: hour(9),
	})
	s.requireServer(t, "com.example/a", []registry.Quarantined{whole, one}, []registry.PriorStatus{
		newPrior(t, "1.0.0"),
	})
}

func replacesPriorStatus(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0", "2.0.0")
	whole, first := newEntry(t, "com.example/a", ""), newPrior(t, "1.0.0")
	s.add(t, whole, first)
	deleted := registry.PriorStatus{
		Version: version(t, "1.0.0"), Status: registry.StatusDeleted, Message: "gone", ChangedAt: hour(9),
	}
	added := newPrior(t, "2.0.0")
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		return s.Quarantine.SetPrior(ctx, whole.Name, []registry.PriorStatus{deleted, added})
	})
	s.requireServer(t, "com.example/a", []registry.Quarantined{whole}, []registry.PriorStatus{deleted, added})
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		return s.Quarantine.SetPrior(ctx, whole.Name, nil)
	})
}

func removesEntries(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0", "2.0.0")
	one, whole := newEntry(t, "com.example/a", "1.0.0"), newEntry(t, "com.example/a", "")
	first, second := newPrior(t, "1.0.0"), newPrior(t, "2.0.0")
	s.add(t, whole, first, second)
	s.add(t, one)
	remove := func(ctx context.Context, v registry.Version, released ...registry.Version) error {
		return s.Quarantine.Remove(ctx, whole.Name, v, released)
	}
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		return remove(ctx, registry.Version{}, second.Version)
	})
	s.requireServer(t, "com.example/a", []registry.Quarantined{one}, []registry.PriorStatus{first})
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		if err := remove(ctx, registry.Version{}, first.Version); !fault.Is(err, fault.NotFound) {
			t.Errorf("Remove again: %v, want fault.NotFound", err)
		}
		return nil
	})
	s.requireServer(t, "com.example/a", []registry.Quarantined{one}, []registry.PriorStatus{first})
	s.inServer(t, "com.example/a", func(ctx context.Context) error { return remove(ctx, one.Version, first.Version) })
	s.requireServer(t, "com.example/a", nil, nil)
	s.add(t, one, first)
	s.requireServer(t, "com.example/a", []registry.Quarantined{one}, []registry.PriorStatus{first})
}

func keepsManyPriorStatuses(t *testing.T, s QuarantineStores) {
	t.Helper()
	var versions []string
	var prior []registry.PriorStatus
	var released []registry.Version
	for i := range 1100 {
		v := fmt.Sprintf("1.0.%04d-a", i)
		versions, prior, released = append(versions, v), append(prior, newPrior(t, v)), append(released, version(t, v))
	}
	s.publishServer(t, "com.example/a", versions...)
	q := newEntry(t, "com.example/a", "")
	s.add(t, q, prior...)
	s.requireServer(t, "com.example/a", []registry.Quarantined{q}, prior)
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		return s.Quarantine.Remove(ctx, q.Name, q.Version, released[:len(released)-1])
	})
	s.requireServer(t, "com.example/a", nil, prior[len(prior)-1:])
}

func listsByPatterns(t *testing.T, s QuarantineStores) {
	t.Helper()
	entries := map[string]registry.Quarantined{}
	for _, server := range []string{
		"com.example/a", "com.example/a-b", "com.example/ab", "com.example/b", "org.example/a",
	} {
		s.publishServer(t, server, "1.0.0")
		entries[server] = newEntry(t, server, "1.0.0")
		s.add(t, entries[server])
	}
	for name, c := range map[string]struct{ patterns, want []string }{
		"none":     {nil, nil},
		"one name": {[]string{"com.example/a"}, []string{"com.example/a"}},
		"a prefix": {[]string{"com.example/a*"}, []string{"com.example/a", "com.example/a-b", "com.example/ab"}},
		"a namespace": {
			[]string{"com.example/*"}, []string{"com.example/a", "com.example/a-b", "com.example/ab", "com.example/b"},
		},
		"nothing": {[]string{"net.example/*", "com.example/c"}, nil},
		"several": {
			[]string{"org.*", "com.example/b", "com.example/ab"}, []string{
				"com.example/ab", "com.example/b", "org.example/a",
			},
		},
		"that overlap": {
			[]string{"com.example/a*", "com.example/ab"}, []string{
				"com.example/a", "com.example/a-b", "com.example/ab",
			},
		},
		"everything too": {
			[]string{"org.*", "*"}, []string{
				"com.example/a", "com.example/a-b", "com.example/ab", "com.example/b", "org.example/a",
			},
		},
	} {
		var q registrystore.QuarantineQuery
		for _, text := range c.patterns {
			q.Patterns = append(q.Patterns, must(t, registry.ParsePattern, text))
		}
		q.Limit = 10
		var want []registry.Quarantined
		for _, server := range c.want {
			want = append(want, entries[server])
		}
		t.Run(name, func(t *testing.T) { s.requireList(t, q, want...) })
	}
}

func listsEntriesInPages(t *testing.T, s QuarantineStores) {
	t.Helper()
	var want []registry.Quarantined
	for i := range 5 {
		server := fmt.Sprintf("com.example/s%d", i)
		s.publishServer(t, server, "1.0.0", "2.0.0")
		for _, v := range []string{"", "1.0.0", "2.0.0"} {
			q := newEntry(t, server, v)
			s.add(t, q)
			want = append(want, q)
		}
	}
	many := everything(t)
	for len(many) < registrystore.MaxQuarantinePatterns {
		many = append(many, must(t, registry.ParsePattern, fmt.Sprintf("org.example/n%d*", len(many))))
	}
	for _, limit := range []int{1, 4, 15, 20} {
		q := registrystore.QuarantineQuery{Patterns: many, Limit: limit}
		for rest := range slices.Chunk(want, limit) {
			s.requireList(t, q, rest...)
			last := rest[len(rest)-1]
			q.AfterName, q.AfterVersion = last.Name.String(), last.Version.String()
		}
		s.requireList(t, q)
	}
}

func rollsQuarantineBack(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0", "2.0.0")
	kept, added := newEntry(t, "com.example/a", "1.0.0"), newEntry(t, "com.example/a", "2.0.0")
	s.add(t, kept, newPrior(t, "1.0.0"))
	err := s.tryInServer(t, "com.example/a", func(ctx context.Context) error {
		err := errors.Join(s.Quarantine.Add(ctx, added, []registry.PriorStatus{newPrior(t, "2.0.0")}),
			s.Quarantine.Remove(ctx, kept.Name, kept.Version, []registry.Version{kept.Version}))
		if err != nil {
			return err
		}
		if found, err := s.Quarantine.Entries(ctx, kept.Name); err != nil || len(found) != 1 || found[0] != added {
			t.Errorf("Entries in the transaction = %+v, %v, want its changes", found, err)
		}
		return errChange
	})
	if !errors.Is(err, errChange) {
		t.Errorf("Atomically: %v", err)
	}
	s.requireServer(t, "com.example/a", []registry.Quarantined{kept}, []registry.PriorStatus{newPrior(t, "1.0.0")})
}

// quarantinesInParallel checks that a caller that has locked a server sees the entries of all that
// had locked it before.
func quarantinesInParallel(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0")
	q := newEntry(t, "com.example/a", "1.0.0")
	added := make(chan bool, writers)
	for range writers {
		go func() {
			mine := false
			err := s.tryInServer(t, "com.example/a", func(ctx context.Context) error {
				found, err := s.Quarantine.Entries(ctx, q.Name)
				if mine = err == nil && len(found) == 0; mine {
					return s.Quarantine.Add(ctx, q, nil)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			added <- mine && err == nil
		}()
	}
	won := 0
	for range writers {
		if <-added {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d callers saw no entry, want 1", won)
	}
}

func refusesCanceledQuarantine(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0")
	q := newEntry(t, "com.example/a", "1.0.0")
	s.add(t, q)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, entries := s.Quarantine.Entries(ctx, q.Name)
	_, prior := s.Quarantine.PriorStatuses(ctx, q.Name)
	_, list := s.Quarantine.List(ctx, registrystore.QuarantineQuery{Patterns: everything(t), Limit: 1})
	_, nothing := s.Quarantine.List(ctx, registrystore.QuarantineQuery{Limit: 1})
	for call, err := range map[string]error{
		"Add":     s.Quarantine.Add(ctx, newEntry(t, "com.example/a", ""), nil),
		"Remove":  s.Quarantine.Remove(ctx, q.Name, q.Version, nil),
		"Entries": entries, "PriorStatuses": prior, "List": list, "List of nothing": nothing,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context: %v", call, err)
		}
	}
	s.requireServer(t, "com.example/a", []registry.Quarantined{q}, nil)
}
