package event

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestKeys checks that keys are words that the headers of caches can have, and those of two servers
// are usually not the same.
func TestKeys(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`^[a-z0-9-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		one, other := rapid.String().Draw(t, "one"), rapid.String().Draw(t, "other")
		if !word.MatchString(string(ServerKey(one))) {
			t.Fatalf("the key of %q is %q", one, ServerKey(one))
		}
		if one != other && ServerKey(one) == ServerKey(other) {
			t.Fatalf("%q and %q have one key", one, other)
		}
	})
	name, err := registry.ParseName("com.example/weather")
	must.Succeed(t, err)
	// The hash is FNV-1a with 64 bits, so that programs of others can make the key of a server too.
	if got := Keys(name); len(got) != 3 || got[0] != "server-63939fbe1138fb35" || got[1] != "servers" || got[2] != "allowlists" {
		t.Errorf("the keys of a change are %v", got)
	}
}

// TestChanges checks which events change what can be read.
func TestChanges(t *testing.T) {
	t.Parallel()
	not := map[Type]bool{Approved: true, Rejected: true, ChangesRequested: true, Purge: true, Test: true, Tools: true}
	for _, kind := range append(Types(), Test) {
		if kind.Changes() == not[kind] {
			t.Errorf("%s: %v", kind, kind.Changes())
		}
	}
}
