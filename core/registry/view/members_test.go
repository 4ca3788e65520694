package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	v, err := view.New(view.Draft{
		Name: "v", Access: "people", People: []string{"Ada@Example.com", "ada@example.com"}, Groups: []string{"acme/a/b c", "acme/a/b c"},
	})
	if err != nil || fmt.Sprint(v.Members) != "{[ada@example.com] [acme/a/b c]}" || v.Members.Any() {
		t.Fatalf("%+v, %v", v, err)
	}
	for _, c := range []struct {
		email  string
		groups []string
		want   bool
	}{
		{"ada@example.com", nil, true}, {"eve@example.com", []string{"acme/a/b c"}, true}, {"", []string{"acme/a/b"}, false},
		{"eve@example.com", []string{"acme/a/b C", "other/a/b c", "a/b c"}, false}, {"", nil, false},
	} {
		if got := v.Members.Has(c.email, c.groups); got != c.want {
			t.Errorf("%s in %q: %t", c.email, c.groups, got)
		}
	}
	if !(view.Members{}).Has("", nil) {
		t.Error("without members, not everybody is one")
	}
}

func TestWrongMembers(t *testing.T) {
	t.Parallel()
	people := make([]string, 26)
	for i := range people {
		people[i] = fmt.Sprintf("p%d@example.com", i)
	}
	groups := strings.Fields(strings.Repeat("acme/g ", 1))
	for i := range 24 {
		groups = append(groups, fmt.Sprintf("acme/g%d", i))
	}
	for _, c := range []struct {
		field, access  string
		people, groups []string
	}{
		{"people", "people", []string{"ada"}, nil}, {"people", "people", []string{"Ada <ada@example.com>"}, nil},
		{"groups", "people", nil, []string{"devs"}}, {"groups", "people", nil, []string{"Acme/devs"}},
		{"groups", "people", nil, []string{"acme/"}}, {"groups", "people", nil, []string{"acme/a\nb"}},
		{"people", "", people[:1], nil}, {"people", "token", people[:1], nil}, {"groups", "public", nil, groups[:1]},
		{"people", "people", people, groups},
	} {
		_, err := view.New(view.Draft{Name: "v", Access: c.access, People: c.people, Groups: c.groups})
		if f, ok := fault.As(err); !ok || f.Kind != fault.Invalid || !strings.HasPrefix(f.Message, c.field) {
			t.Errorf("%+v: %v, want a fault about %s", c, err, c.field)
		}
	}
	if _, err := view.New(view.Draft{Name: "v", Access: "people", People: people[:25], Groups: groups}); err != nil {
		t.Errorf("50 people and groups: %v", err)
	}
}
