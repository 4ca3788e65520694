package scope_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// TestParse checks which lists of names are scopes, and their order.
func TestParse(t *testing.T) {
	t.Parallel()
	if all, err := scope.Parse(strings.Fields(scope.All().String())); err != nil || len(all) != 8 {
		t.Errorf("all scopes are %s, error %v", all, err)
	}
	if s, err := scope.Parse([]string{"registry:read", "admin:write"}); err != nil ||
		s.String() != "admin:write registry:read" {
		t.Errorf("two scopes are %q, error %v", s, err)
	}
	for problem, names := range map[string][]string{
		"at least one": nil, `"registry:all"`: {"decide", "registry:all"}, "decide twice": {"decide", "decide"},
		`"Decide"`: {"Decide"},
	} {
		if _, err := scope.Parse(names); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v: %v, want fault.Invalid with %s", names, err, problem)
		}
	}
}

// TestHas checks what a scope includes: itself, and admin:write also admin:read.
func TestHas(t *testing.T) {
	t.Parallel()
	for _, one := range scope.All() {
		for _, other := range scope.All() {
			want := one == other || one == scope.Admin && other == scope.AdminRead
			if got := (scope.Set{one}).Has(other); got != want {
				t.Errorf("%s includes %s: %v, want %v", one, other, got, want)
			}
		}
	}
}

// TestInsufficient checks the challenge of RFC 6750.
func TestInsufficient(t *testing.T) {
	t.Parallel()
	f, ok := fault.As(scope.Insufficient(scope.Publish, scope.Edit))
	if !ok || f.Kind != fault.Forbidden || f.Code != "insufficient_scope" ||
		f.Details.Text("challenge") != `Bearer error="insufficient_scope", scope="registry:publish registry:edit"` ||
		!strings.Contains(f.Message, "registry:publish or registry:edit") {
		t.Errorf("the error is %+v", f)
	}
}
