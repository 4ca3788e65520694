package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// checkListing reads a listing with each parameter and with cursors. What each value selects or
// breaks is checked in core/registry/browsing and in the suite of its store.
func checkListing(t *testing.T, r *registry) {
	const space = "com.example.listing/"
	r.publish(t, space+"a_b", "1.0.0", "2.0.0")
	r.publish(t, space+"aXb", "2.0.0")
	r.publish(t, space+"gone", "1.0.0", "2.0.0")
	r.setStatus(t, space+"gone", "2.0.0", "deleted")
	image := fixture.NewServerDocument(space+"image", "1.0.0")
	delete(image, "remotes")
	image["packages"] = []any{object{
		"registryType": "oci", "identifier": "docker.io/acme/image:1.1.0", "transport": object{"type": "stdio"},
	}}
	r.write(t, "POST", "/publish", image)
	for query, want := range map[string]string{
		"":                                    "aXb@2.0.0 a_b@1.0.0 a_b@2.0.0 gone@1.0.0 image@1.0.0",
		"&limit=2":                            "aXb@2.0.0 a_b@1.0.0",
		"&cursor=&updated_since=&unknown=1":   "aXb@2.0.0 a_b@1.0.0 a_b@2.0.0 gone@1.0.0 image@1.0.0",
		"/A_":                                 "a_b@1.0.0 a_b@2.0.0",
		"/a%25":                               "",
		"&version=latest":                     "aXb@2.0.0 a_b@2.0.0 gone@1.0.0 image@1.0.0",
		"&version=2.0.0&include_deleted=true": "aXb@2.0.0 a_b@2.0.0 gone@2.0.0",
		"&status=deleted":                     "gone@2.0.0",
		"&remote=true&status=active":          "aXb@2.0.0 a_b@1.0.0 a_b@2.0.0 gone@1.0.0",
		"&package_type=oci":                   "image@1.0.0",
		"&updated_since=2999-01-01T00:00:00%2B01:00": "",
	} {
		found := r.list(t, "/servers?search=com.example.listing"+query).Names()
		if got := strings.ReplaceAll(strings.Join(found, " "), space, ""); got != want {
			t.Errorf("%q answers %s, want %s", query, got, want)
		}
	}
	updated := decodeRecord(t, r.get(t, fixture.ServerPath(space+"a_b", "1.0.0"))).Official().UpdatedAt
	r.setStatus(t, space+"a_b", "1.0.0", "deprecated")
	if got := r.list(t, "/servers?search=listing/a_&updated_since="+updated).Names(); len(got) != 1 {
		t.Errorf("since %s: %v, want the version that was changed", updated, got)
	}
	for _, wrong := range []string{
		"limit=0", "cursor=abc", "search=%00", "version=%ff", "include_deleted=yes", "updated_since=yesterday",
		"status=gone", "remote=yes", "package_type=%00",
	} {
		parameter, _, _ := strings.Cut(wrong, "=")
		wantFault(t, r.get(t, "/servers?"+wrong), http.StatusBadRequest, parameter)
	}
	cursor := r.list(t, "/servers?search=example.listing&version=latest&limit=2").Next()
	rest := []string{space + "gone@1.0.0", space + "image@1.0.0"}
	for query, want := range map[string][]string{
		"": rest, "&limit=1": rest[:1], "&search=example.listing&version=latest": rest,
	} {
		if got := r.list(t, "/servers?cursor="+cursor+query).Names(); !slices.Equal(got, want) {
			t.Errorf("%q answers %v, want %v", query, got, want)
		}
	}
	wantFault(t, r.get(t, "/servers?search=example&cursor="+cursor), http.StatusBadRequest, "search")
	wantFault(t, r.get(t, "/servers?cursor=A"+cursor[1:]+"A"), http.StatusBadRequest, "cursor")
}

// checkPaging reads all pages while other versions are added, changed and deleted. The pages must
// have each unchanged version once, in order.
func checkPaging(t *testing.T, r *registry) {
	const space = "com.example.paging/"
	var stay, met []string
	for i := range 8 {
		name := fmt.Sprintf("%ss%02d", space, 3*i)
		r.publish(t, name, "1.0.0", "1.10.0", "1.9.0")
		stay = append(stay, name+"@1.0.0", name+"@1.10.0", name+"@1.9.0")
	}
	cursor := ""
	for page := 0; ; page++ {
		l := r.list(t, fmt.Sprintf("/servers?search=%s&limit=%d&cursor=%s", space, 1+page%5, cursor))
		met = append(met, l.Names()...)
		if cursor = l.Next(); cursor == "" {
			break
		}
		before := fmt.Sprintf("%ss%02d", space, (7*page)%24)
		r.publish(t, before+"-new", "1.0.0") // before and after the position of the cursor
		if slices.Contains(stay, before+"@1.0.0") {
			r.write(t, "PUT", fixture.ServerPath(before, "1.0.0"), fixture.NewServerDocument(before, "1.0.0"))
			r.publish(t, before, fmt.Sprintf("2.%d.0", page))
		}
	}
	inOrder := slices.IsSortedFunc(met, func(a, b string) int {
		return strings.Compare(strings.Replace(a, "@", "\x00", 1), strings.Replace(b, "@", "\x00", 1))
	})
	if n := len(slices.Compact(slices.Clone(met))); n != len(met) || !inOrder {
		t.Errorf("rows are not in order, or there twice: %v", met)
	}
	for _, row := range stay {
		if !slices.Contains(met, row) {
			t.Errorf("%s was not met", row)
		}
	}
}

// checkLatest checks that each step marks the right version as the latest, and no other, and that the
// list of a server begins with the newest publication.
func checkLatest(t *testing.T, r *registry) {
	for i, steps := range [][]string{ // the step, and the version that is then the latest
		{"1.0.0", "1.0.0", "0.9.0", "1.0.0", "1.1.0-rc.1", "1.1.0-rc.1", "1.10.0", "1.10.0", "1.9.0", "1.10.0"},
		{"zulu", "zulu", "alpha", "alpha", "0.0.1-0", "0.0.1-0", "2021.01.01", "0.0.1-0"},
		{
			"1.0.0", "1.0.0", "2.0.0", "2.0.0", "-2.0.0", "1.0.0", "3.0.0", "3.0.0", "-3.0.0", "1.0.0", "-1.0.0",
			"3.0.0", "!2.0.0", "2.0.0", "+3.0.0", "3.0.0",
		},
	} {
		name := fmt.Sprintf("com.example.latest/s%d", i)
		var published []string // newest first
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
				published = append([]string{name + "@" + step}, published...)
			}
			wantLatest(t, r, name, steps[j+1], steps[:j+1])
		}
		all := r.list(t, fixture.ServerPath(name)+"/versions?include_deleted=true")
		if got := all.Names(); !slices.Equal(got, published) {
			t.Errorf("versions are %v, want %v", got, published)
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
	query := ""
	if len(living) == 0 {
		wantFault(t, r.get(t, fixture.ServerPath(name, "latest")), http.StatusNotFound)
		query = "include_deleted=true"
	}
	shown := decodeRecord(t, r.get(t, fixture.ServerPath(name, "latest")+"?"+query))
	if shown.Server["version"] != want || !shown.Official().IsLatest {
		t.Errorf("after %v, latest shows %v, want %s", after, shown, want)
	}
	listed := r.list(t, "/servers?version=latest&search="+name+"&"+query).Names()
	if !slices.Equal(listed, []string{name + "@" + want}) {
		t.Errorf("after %v, %v is listed as latest, want %s", after, listed, want)
	}
}
