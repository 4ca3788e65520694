package registry

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// checkParameters sends each parameter of the listing with valid and invalid values.
func checkParameters(t *testing.T, r *registry) {
	var names []string
	for i := range 35 {
		names = append(names, fmt.Sprintf("com.example.parameters/s%02d", i))
		r.publish(t, names[i], "1.0.0")
	}
	const all = "/servers?search=com.example.parameters"
	for limit, want := range map[string]int{
		"": 30, "&limit=": 30, "&limit=1": 1, "&limit=34": 34, "&limit=35": 35, "&limit=100": 35,
	} {
		l := r.list(t, all+limit)
		if len(l.Servers) != want || (l.Next() == "") != (want == 35) {
			t.Errorf("%q answers %d rows, next %q", limit, len(l.Servers), l.Next())
		}
	}
	for _, wrong := range []string{
		"limit=0", "limit=101", "limit=-1", "limit=1.5", "limit=ten", "limit=1e1", "limit=99999999999999999999",
		"limit=%00", "limit=%201",
		"cursor=abc", "cursor=%00", "cursor=" + strings.Repeat("A", 5000), "search=%00", "search=%ff", "version=%00",
		"include_deleted=yes", "include_deleted=2", "include_deleted=%00",
		"updated_since=yesterday", "updated_since=2026-01-01", "updated_since=2026-01-01T00:00:00",
		"updated_since=1767225600",
		"updated_since=2026-13-01T00:00:00Z", "updated_since=2026-02-30T00:00:00Z",
		"updated_since=2026-01-01T00:00:00,5Z",
		"updated_since=2026-01-01T00:00:00%2B25:00", "updated_since=2026-01-01%2000:00:00Z",
		"updated_since=2026-01-01T00:00:00Z&include_deleted=false", "status=deleted&include_deleted=false",
		"status=gone", "status=%00", "remote=yes", "package_type=%00", "package_type=" + strings.Repeat("n", 65),
	} {
		parameter, _, _ := strings.Cut(wrong, "=")
		if strings.HasSuffix(wrong, "&include_deleted=false") {
			parameter = "include_deleted"
		}
		wantFault(t, r.get(t, "/servers?"+wrong), http.StatusBadRequest, parameter)
	}
	for _, empty := range []string{
		"&cursor=", "&version=", "&updated_since=", "&include_deleted=", "&unknown=1", "&Limit=0",
	} {
		if got := r.list(t, all+"&limit=100"+empty); len(got.Servers) != len(names) {
			t.Errorf("%q answers %d rows", empty, len(got.Servers))
		}
	}
}

// checkFilters checks that each filter selects the right versions.
func checkFilters(t *testing.T, r *registry) {
	const space = "com.example.filters/"
	r.publish(t, space+"a_b", "1.0.0", "2.0.0", "1.5.0")
	r.publish(t, space+"aXb", "2.0.0")
	r.publish(t, space+"Weather", "1.0.0-rc.1", "1.0.0")
	r.publish(t, space+"gone", "1.0.0", "2.0.0")
	r.setStatus(t, space+"gone", "2.0.0", "deleted")
	r.publish(t, space+"lost", "1.0.0")
	r.setStatus(t, space+"lost", "1.0.0", "deleted")
	for query, want := range map[string][]string{
		"search=com.example.filters": {
			"Weather@1.0.0", "Weather@1.0.0-rc.1", "aXb@2.0.0", "a_b@1.0.0", "a_b@1.5.0", "a_b@2.0.0", "gone@1.0.0",
		},
		"search=COM.EXAMPLE.Filters/WEATHER": {
			"Weather@1.0.0", "Weather@1.0.0-rc.1",
		},
		"search=filters/a_B": {
			"a_b@1.0.0", "a_b@1.5.0", "a_b@2.0.0",
		},
		"search=filters/a%25":                      {},
		`search=filters\/a`:                        {},
		"search=filters/a*b":                       {},
		"search=" + strings.Repeat("filters", 100): {},
		"search=ilters/w": {
			"Weather@1.0.0", "Weather@1.0.0-rc.1",
		},
		"search=filters/a%27b%22": {},
		"search=com.example.filters&version=latest": {
			"Weather@1.0.0", "aXb@2.0.0", "a_b@2.0.0", "gone@1.0.0",
		},
		"search=com.example.filters&version=latest&include_deleted=true": {
			"Weather@1.0.0", "aXb@2.0.0", "a_b@2.0.0", "gone@1.0.0", "lost@1.0.0",
		},
		"search=com.example.filters&version=2.0.0": {
			"aXb@2.0.0", "a_b@2.0.0",
		},
		"search=com.example.filters&version=2.0.0&include_deleted=true": {
			"aXb@2.0.0", "a_b@2.0.0", "gone@2.0.0",
		},
		"search=com.example.filters&version=2.0.0&include_deleted=false": {
			"aXb@2.0.0", "a_b@2.0.0",
		},
		"search=com.example.filters&version=Latest":                                                 {},
		"search=com.example.filters&version=%5E1.0.0":                                               {},
		"search=com.example.filters&version=" + strings.Repeat("1", 300):                            {},
		"search=filters/lost":                                                                       {},
		"search=filters/lost&include_deleted=true":                                                  {"lost@1.0.0"},
		"search=filters/lost&updated_since=2020-01-01T00:00:00Z":                                    {"lost@1.0.0"},
		"search=filters/lost&updated_since=2020-01-01T00:00:00Z&include_deleted=true":               {"lost@1.0.0"},
		"search=filters/gone&updated_since=2020-01-01t00:00:00.123456789z&version=2.0.0":            {"gone@2.0.0"},
		"search=com.example.filters&updated_since=2999-01-01T00:00:00%2B01:00":                      {},
		"search=com.example.filters&version=latest&updated_since=2020-01-01T00:00:00-05:00&limit=1": {"Weather@1.0.0"},
		"search=com.example.filters&status=deleted": {
			"gone@2.0.0", "lost@1.0.0",
		},
		"search=com.example.filters&status=deleted&version=latest": {"lost@1.0.0"},
		"search=com.example.filters&status=active&version=latest&remote=true": {
			"Weather@1.0.0", "aXb@2.0.0", "a_b@2.0.0", "gone@1.0.0",
		},
		"search=com.example.filters&remote=false":     {},
		"search=com.example.filters&package_type=npm": {},
	} {
		got := r.list(t, "/servers?"+query).Names()
		for i := range want {
			want[i] = space + want[i]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s answers %v, want %v", query, got, want)
		}
	}
	checkSince(t, r, space+"a_b")
	checkOffers(t, r)
}

// checkOffers checks that versions are selected by their packages and remotes.
func checkOffers(t *testing.T, r *registry) {
	const name = "com.example.offers/image"
	r.publish(t, name, "1.0.0")
	doc := fixture.NewServerDocument(name, "1.1.0")
	delete(doc, "remotes")
	doc["packages"] = []any{map[string]any{
		"registryType": "oci", "identifier": "docker.io/acme/image:1.1.0", "transport": map[string]string{
			"type": "stdio",
		},
	}}
	r.write(t, "POST", "/publish", doc)
	for query, want := range map[string][]string{
		"&remote=true": {name + "@1.0.0"}, "&remote=0": {name + "@1.1.0"}, "&package_type=oci": {name + "@1.1.0"},
		"&package_type=OCI": {}, "&package_type=oci&remote=true": {}, "&status=active&package_type=oci": {
			name + "@1.1.0",
		},
	} {
		if got := r.list(t, "/servers?search=com.example.offers"+query).Names(); !slices.Equal(got, want) {
			t.Errorf("%s answers %v, want %v", query, got, want)
		}
	}
}

// checkSince checks that updated_since selects strictly later versions, to the microsecond.
func checkSince(t *testing.T, r *registry, name string) {
	updated := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.5.0"))).Official().UpdatedAt
	since := func(when string) []string {
		return r.list(t, "/servers?search="+name+"&version=1.5.0&updated_since="+url.QueryEscape(when)).Names()
	}
	if got := since(updated); len(got) != 0 {
		t.Errorf("since its own update time: %v", got)
	}
	later := strings.TrimSuffix(updated, "Z") + "999Z" // less than a microsecond
	if got := since(later); len(got) != 0 {
		t.Errorf("since just after its update time: %v", got)
	}
	if got := since("2020-01-01T00:00:00Z"); len(got) != 1 {
		t.Errorf("since long ago: %v", got)
	}
	r.setStatus(t, name, "1.5.0", "deprecated")
	if got := since(updated); len(got) != 1 {
		t.Errorf("since before a change: %v", got)
	}
}

// checkCursors checks that cursors are opaque, bound to their filters and sealed.
func checkCursors(t *testing.T, r *registry) {
	const space = "com.example.cursors/"
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		r.publish(t, space+name, "1.0.0", "2.0.0")
	}
	first := "/servers?search=example.cursors&version=latest&include_deleted=true&limit=2"
	cursor := r.list(t, first).Next()
	if cursor == "" || strings.ContainsAny(cursor, "+/=%") {
		t.Fatalf("cursor is %q", cursor)
	}
	rest := []string{space + "c@2.0.0", space + "d@2.0.0", space + "e@2.0.0"}
	for query, want := range map[string][]string{
		"":                         rest,
		"&limit=1":                 rest[:1],
		"&limit=":                  rest,
		"&limit=100":               rest,
		"&search=example.cursors":  rest,
		"&version=latest&search=":  rest,
		"&include_deleted=true":    rest,
		"&updated_since=&version=": rest,
		"&limit=2&search=example.cursors&version=latest&include_deleted=true": rest[:2],
	} {
		if got := r.list(t, "/servers?cursor="+cursor+query).Names(); !slices.Equal(got, want) {
			t.Errorf("%q answers %v, want %v", query, got, want)
		}
	}
	for query, word := range map[string]string{
		"&search=example":                       "search",
		"&search=example.Cursors":               "search",
		"&version=1.0.0":                        "version",
		"&include_deleted=false":                "include_deleted",
		"&updated_since=2020-01-01T00:00:00Z":   "updated_since",
		"&include_deleted=maybe":                "include_deleted",
		"&limit=0":                              "limit",
		"&search=example.cursors&version=2.0.0": "version",
	} {
		wantFault(t, r.get(t, "/servers?cursor="+cursor+query), http.StatusBadRequest, word)
	}
	for i := range len(cursor) {
		changed := []byte(cursor)
		changed[i] = map[bool]byte{true: 'B', false: 'A'}[changed[i] == 'A']
		wantFault(t, r.get(t, "/servers?cursor="+string(changed)), http.StatusBadRequest, "cursor")
	}
	for _, wrong := range []string{
		cursor + "=", cursor + "A", cursor[1:], cursor[:len(cursor)-1], "%20" + cursor, cursor + "%0A", cursor + cursor,
	} {
		wantFault(t, r.get(t, "/servers?cursor="+wrong), http.StatusBadRequest, "cursor")
	}
	since := r.list(t, "/servers?search=example.cursors&updated_since=2020-01-01T00:00:00Z&limit=1").Next()
	for query, status := range map[string]int{
		"": 200, "&include_deleted=true": 200, "&updated_since=2020-01-01T01:00:00%2B01:00": 200,
		"&include_deleted=false": 400, "&updated_since=2020-01-01T00:00:01Z": 400,
	} {
		r.get(t, "/servers?limit=1&cursor="+since+query).WantStatus(t, status)
	}
}

// checkPaging reads all pages while other versions are added, changed and deleted. The pages must
// have each unchanged version once, in order.
func checkPaging(t *testing.T, r *registry) {
	const space = "com.example.paging/"
	stay := map[string]bool{}
	for i := range 20 {
		name := fmt.Sprintf("%ss%02d", space, 3*i)
		r.publish(t, name, "1.0.0", "1.10.0", "1.9.0")
		for _, v := range []string{"1.0.0", "1.10.0", "1.9.0"} {
			stay[name+"@"+v] = false
		}
	}
	var met []string
	cursor := ""
	for page := 0; ; page++ {
		l := r.list(t, fmt.Sprintf("/servers?search=%s&limit=%d&cursor=%s", space, 1+page%9, cursor))
		met = append(met, l.Names()...)
		if cursor = l.Next(); cursor == "" {
			break
		}
		before := fmt.Sprintf("%ss%02d", space, (7*page)%60)
		r.publish(t, before+"-new", "1.0.0") // before and after the position of the cursor
		if _, old := stay[before+"@1.0.0"]; old {
			r.write(t, "PUT", fixture.ServerPath(before, "1.0.0"), fixture.NewServerDocument(before, "1.0.0"))
			r.setStatus(t, before, "1.9.0", "deprecated")
			r.publish(t, before, fmt.Sprintf("2.%d.0", page))
		}
	}
	if !slices.IsSortedFunc(met, func(a, b string) int {
		an, av, _ := strings.Cut(a, "@")
		bn, bv, _ := strings.Cut(b, "@")
		if c := strings.Compare(an, bn); c != 0 {
			return c
		}
		return strings.Compare(av, bv)
	}) {
		t.Errorf("rows are not in order of name and version: %v", met)
	}
	seen := map[string]bool{}
	for _, row := range met {
		if seen[row] {
			t.Errorf("%s was met twice", row)
		}
		seen[row] = true
	}
	for row := range stay {
		if !seen[row] {
			t.Errorf("%s was not met", row)
		}
	}
}

// checkOrder checks that the list of all versions starts with the newest publication.
func checkOrder(t *testing.T, r *registry) {
	name := "com.example.order/server"
	var versions, want []string
	for i := range 120 { // more than a page of the listing
		v := fmt.Sprintf("%d.%d.0", (i*37)%120, i)
		versions, want = append(versions, v), append([]string{name + "@" + v}, want...)
	}
	r.publish(t, name, versions...)
	l := r.list(t, fixture.ServerPath(name)+"/versions")
	if !slices.Equal(l.Names(), want) || l.Next() != "" {
		t.Errorf("versions are %v, next %q", l.Names(), l.Next())
	}
	for i := 1; i < len(l.Servers); i++ {
		if a, b := l.Servers[i-1].Official().PublishedAt, l.Servers[i].Official().PublishedAt; a <= b {
			t.Errorf("%s comes before %s", a, b)
		}
	}
	r.setStatus(t, name, versions[5], "deleted")
	r.setStatus(t, name, versions[7], "deprecated")
	if got := r.list(t, fixture.ServerPath(name)+"/versions"); len(got.Servers) != len(versions)-1 ||
		slices.Contains(got.Names(), name+"@"+versions[5]) {
		t.Errorf("with one deleted there are %d versions", len(got.Servers))
	}
	for _, flag := range []string{"true", "1", "TRUE"} {
		if got := r.list(t,
			fixture.ServerPath(name)+"/versions?include_deleted="+flag); !slices.Equal(got.Names(), want) {
			t.Errorf("include_deleted=%s answers %d versions", flag, len(got.Servers))
		}
	}
	r.send(t, "PATCH", fixture.ServerPath(name)+"/status", `{"status":"deleted"}`).WantStatus(t, http.StatusOK)
	for _, query := range []string{"", "?include_deleted=false", "?include_deleted="} {
		wantFault(t, r.get(t, fixture.ServerPath(name)+"/versions"+query), http.StatusNotFound)
	}
	if got := r.list(t, fixture.ServerPath(name)+"/versions?include_deleted=true"); !slices.Equal(got.Names(), want) {
		t.Errorf("with all deleted there are %d versions", len(got.Servers))
	}
}

// checkLatest checks that each step marks the right version as the latest, and no other.
func checkLatest(t *testing.T, r *registry) {
	for i, steps := range [][]string{ // the step, and the version that is then the latest
		{"1.0.0", "1.0.0", "0.9.0", "1.0.0", "1.1.0-rc.1", "1.1.0-rc.1", "1.1.0", "1.1.0", "1.1.0-rc.2", "1.1.0"},
		{"1.9.0", "1.9.0", "1.10.0", "1.10.0", "1.9.1", "1.10.0"},
		{
			"zulu", "zulu", "alpha", "alpha", "0.0.1-0", "0.0.1-0", "mike", "0.0.1-0", "2021.01.01", "0.0.1-0",
			"1.2", "0.0.1-0",
		},
		{
			"1.0.0+a", "1.0.0+a", "1.0.0+b", "1.0.0+b", "v1.0.0", "v1.0.0", "1.0.0", "1.0.0", "V9.0.0", "1.0.0",
			"v2.0.0", "v2.0.0",
		},
		{
			"1.0.0-alpha", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-alpha.beta",
			"1.0.0-beta.11", "1.0.0-beta.11", "1.0.0-beta.2", "1.0.0-beta.11",
		},
		{
			"18446744073709551616.0.0", "18446744073709551616.0.0", "18446744073709551617.0.0",
			"18446744073709551617.0.0", "9.0.0", "18446744073709551617.0.0",
		},
		{"0.1.0", "0.1.0", "01.0.0", "0.1.0", "1.0.0-01", "0.1.0", "1.0", "0.1.0", "1.0.0.0", "0.1.0"},
		{
			"1.0.0", "1.0.0", "2.0.0", "2.0.0", "-2.0.0", "1.0.0", "3.0.0", "3.0.0", "-3.0.0", "1.0.0", "-1.0.0",
			"3.0.0", "!2.0.0", "2.0.0", "+3.0.0", "3.0.0",
		},
		{"one", "one", "two", "two", "-two", "one", "-one", "two", "+one", "one"},
	} {
		name := fmt.Sprintf("com.example.latest/s%d", i)
		for j := 0; j < len(steps); j += 2 {
			switch step := steps[j]; step[0] {
			case '-':
				r.send(t, "DELETE", fixture.ServerPath(name, step[1:]), nil).WantStatus(t, http.StatusOK)
			case '!':
				r.setStatus(t, name, step[1:], "deprecated")
			case '+':
				r.setStatus(t, name, step[1:], "active")
			default:
				r.publish(t, name, step)
			}
			wantLatest(t, r, name, steps[j+1], steps[:j+1])
		}
	}
}

func wantLatest(t *testing.T, r *registry, name, want string, after []string) {
	t.Helper()
	var latest, living []string
	for _, v := range r.list(t, fixture.ServerPath(name)+"/versions?include_deleted=true").Servers {
		if v.Official().IsLatest {
			latest = append(latest, v.Server["version"].(string))
		}
		if v.Official().Status != "deleted" {
			living = append(living, v.Server["version"].(string))
		}
	}
	if !slices.Equal(latest, []string{want}) {
		t.Errorf("after %v, %v is latest, want %s", after, latest, want)
	}
	shown := r.get(t, fixture.ServerPath(name, "latest"))
	if len(living) == 0 {
		wantFault(t, shown, http.StatusNotFound)
		shown = r.get(t, fixture.ServerPath(name, "latest")+"?include_deleted=true")
	}
	if got := decodeRecord(t, shown); got.Server["version"] != want || !got.Official().IsLatest {
		t.Errorf("after %v, latest shows %v, want %s", after, got, want)
	}
	listed := r.list(t,
		"/servers?version=latest&search="+name+map[bool]string{true: "&include_deleted=true"}[len(living) == 0])
	if !slices.Equal(listed.Names(), []string{name + "@" + want}) {
		t.Errorf("after %v, %v is listed as latest, want %s", after, listed.Names(), want)
	}
}
