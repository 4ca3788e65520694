package registrystoretest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// rangeOf returns the range of the names that a pattern selects.
func rangeOf(t *testing.T, pattern string) registry.NameRange {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return p.Range()
}

func listsRanges(t *testing.T, o opened) {
	t.Helper()
	o.saveUnsortedServers(t)
	a, wide := rangeOf(t, "com.example/a"), rangeOf(t, "com.example/a*")
	o.lists(t, registrystore.Query{Names: []registry.NameRange{a}, LatestOnly: true}, "com.example/a@1.0.0")
	o.lists(t, registrystore.Query{Names: []registry.NameRange{wide}, LatestOnly: true},
		"com.example/a@1.0.0", "com.example/a-b@1.0.0", "com.example/a.b@1.0.0", "com.example/ab@1.0.0")
	rest := []registry.NameRange{{From: wide.From, Below: a.From}, {From: a.Below, Below: wide.Below}}
	o.lists(t, registrystore.Query{Names: rest}, "com.example/a-b@1.0.0", "com.example/a.b@1.0.0",
		"com.example/ab@1.0.0")
	o.lists(t, registrystore.Query{Names: rest, AfterName: "com.example/a.b", AfterVersion: "1.0.0"},
		"com.example/ab@1.0.0")
	o.lists(t, registrystore.Query{Names: rest, AfterName: "com.example/z", AfterVersion: "1.0.0"})
	o.lists(t, registrystore.Query{Names: []registry.NameRange{a}, Search: "COM.", Version: version(t, "A")},
		"com.example/a@A")
	o.lists(t, registrystore.Query{Names: []registry.NameRange{registry.AllNames()}, Search: "_"},
		"com.example/_@1.0.0")
}

// listsManyRanges reads pages of every size of a list of single names.
func listsManyRanges(t *testing.T, o opened) {
	t.Helper()
	const servers = 120
	var want []string
	var ranges []registry.NameRange
	for n := range servers {
		server := fmt.Sprintf("com.example/s%03d", n)
		o.saved(t, published(latest(release(t, server, "1.0.0", n))), published(release(t, server, "2.0.0", n+servers)))
		if n%3 > 0 {
			want = append(want, server+"@1.0.0", server+"@2.0.0")
			ranges = append(ranges, rangeOf(t, server))
		}
	}
	q := registrystore.Query{Names: ranges}
	o.lists(t, q, want...)
	for _, size := range []int{1, 2, 7, 33, 100, len(want), len(want) + 1} {
		if got := o.readPages(t, q, size); !slices.Equal(got, want) {
			t.Errorf("pages of %d give\n%q, want\n%q", size, got, want)
		}
	}
	if p := o.page(t, registrystore.Query{Names: ranges, Limit: len(want)}); p.More {
		t.Error("there is more after the last record")
	}
	q.Bytes = 50
	if got := o.readPages(t, q, 100); !slices.Equal(got, want) {
		t.Errorf("pages of 50 bytes give\n%q, want\n%q", got, want)
	}
}

func selectsNothingWithoutNames(t *testing.T, o opened) {
	t.Helper()
	o.saveUnsortedServers(t)
	for _, q := range []registrystore.Query{
		{}, {Search: "a"}, {UpdatedSince: hour(1)}, {WithoutDeprecated: true}, {LatestOnly: true},
	} {
		q.Names = []registry.NameRange{}
		if p := o.page(t, q); len(p.Records) > 0 || p.More {
			t.Errorf("%+v selects %q, more: %t", q, keys(p.Records), p.More)
		}
	}
}

// saveMixedServers stores servers with versions of all statuses.
func (o opened) saveMixedServers(t *testing.T) []registry.Release {
	t.Helper()
	statuses := []registry.Status{registry.StatusActive, registry.StatusDeprecated, registry.StatusDeleted}
	var all []registry.Release
	for n := range 27 {
		server := fmt.Sprintf("com.example.%c/s%02d", "abc"[n%3], n)
		for v := range 3 {
			r := release(t, server, fmt.Sprintf("%d.0.0", v+1), 10*n+v)
			r.Status = statuses[n/pow(3, v)%3]
			r.Latest = v == n%3
			all = append(all, r)
			o.saved(t, published(r))
		}
	}
	slices.SortFunc(all, func(a, b registry.Release) int {
		return strings.Compare(a.Name.String()+" "+a.Version.String(), b.Name.String()+" "+b.Version.String())
	})
	return all
}

func pow(base, n int) int {
	p := 1
	for range n {
		p *= base
	}
	return p
}

func leavesDeprecatedOut(t *testing.T, o opened) {
	t.Helper()
	all := o.saveMixedServers(t)
	for _, deleted := range []bool{false, true} {
		q := registrystore.Query{WithoutDeprecated: true, Deleted: deleted}
		o.wantSelected(t, all, q)
		for _, size := range []int{1, 2, 5} {
			if got, want := o.readPages(t, q, size), selected(all, q); !slices.Equal(got, want) {
				t.Errorf("pages of %d give\n%q, want\n%q", size, got, want)
			}
		}
		for _, r := range all {
			var want []string
			for _, s := range slices.Backward(all) {
				if s.Name == r.Name && s.Status != registry.StatusDeprecated &&
					(deleted || s.Status != registry.StatusDeleted) {
					want = append(want, s.Name.String()+"@"+s.Version.String())
				}
			}
			p := o.versionsPage(t, registrystore.VersionsQuery{Name: r.Name, Deleted: deleted, WithoutDeprecated: true})
			if got := keys(p.Records); !slices.Equal(got, want) {
				t.Errorf("versions of %s that are not deprecated: %q, want %q", r.Name, got, want)
			}
		}
	}
}

// combinesRangesAndFilters combines ranges with all other filters.
func combinesRangesAndFilters(t *testing.T, o opened) {
	t.Helper()
	all := o.saveMixedServers(t)
	ranges := [][]registry.NameRange{
		{rangeOf(t, "com.example.b/*")},
		{
			rangeOf(t, "com.example.a/s03"), rangeOf(t, "com.example.a/s06"), rangeOf(t, "com.example.b/s1*"),
			rangeOf(t, "com.example.c/*"),
		},
		{registry.AllNames()},
	}
	for _, names := range ranges {
		for _, q := range []registrystore.Query{
			{}, {Search: "S1"}, {UpdatedSince: hour(100)}, {Search: "s2", UpdatedSince: hour(50)}, {
				Version: version(t, "2.0.0"),
			},
		} {
			for n := range 8 {
				q.Names, q.Deleted, q.LatestOnly, q.WithoutDeprecated = names, n&1 > 0,
					n&2 > 0 && q.Version == registry.Version{}, n&4 > 0
				o.wantSelected(t, all, q)
				if got, want := o.readPages(t, q, 2), selected(all, q); !slices.Equal(got, want) {
					t.Errorf("pages of %+v give\n%q, want\n%q", q, got, want)
				}
			}
		}
	}
}

// wantSelected checks what a query selects of all releases.
func (o opened) wantSelected(t *testing.T, all []registry.Release, q registrystore.Query) {
	t.Helper()
	o.lists(t, q, selected(all, q)...)
}

// selected returns what a query selects of all releases.
func selected(all []registry.Release, q registrystore.Query) []string {
	keys := make([]string, 0, len(all))
	for _, r := range all {
		name := r.Name.String()
		within := func(n registry.NameRange) bool { return n.Contains(name) }
		if (q.Names == nil || slices.ContainsFunc(q.Names, within)) &&
			strings.Contains(name, strings.ToLower(q.Search)) &&
			(!q.LatestOnly || r.Latest) && (q.Version == registry.Version{} || r.Version == q.Version) &&
			(q.Deleted || r.Status != registry.StatusDeleted) &&
			(!q.WithoutDeprecated || r.Status != registry.StatusDeprecated) &&
			r.UpdatedAt.After(q.UpdatedSince) {
			keys = append(keys, name+"@"+r.Version.String())
		}
	}
	return keys
}

func findsUndeprecated(t *testing.T, o opened) {
	t.Helper()
	all := o.saveMixedServers(t)
	names := []registry.Name{name(t, "com.example/none")}
	var want []string
	for i := 0; i < len(all); i += 3 {
		of := all[i : i+3]
		if i%2 > 0 {
			continue
		}
		names = append(names, of[0].Name)
		if !slices.ContainsFunc(of, func(r registry.Release) bool {
			return r.Latest && r.Status == registry.StatusDeprecated
		}) {
			continue
		}
		for _, r := range of {
			if r.Status != registry.StatusDeprecated {
				want = append(want, fmt.Sprintf("%+v", r))
			}
		}
	}
	found, err := o.Reader.Undeprecated(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(found))
	for _, r := range found {
		got = append(got, fmt.Sprintf("%+v", r))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("Undeprecated returns\n%q, want\n%q", got, want)
	}
	if none, err := o.Reader.Undeprecated(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("Undeprecated of no names: %v, %v", none, err)
	}
}
