package kinds_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/kinds"
)

// TestNames checks how a kind is called in sentences, paths and events.
func TestNames(t *testing.T) {
	k := kinds.Kind{Name: "accessRule", List: "accessRules"}
	if k.Noun() != "access rule" || k.Verb() != "access_rule" || k.Title() != "Access rules" || k.Path() != "access-rules" {
		t.Errorf("the names are %q, %q, %q and %q", k.Noun(), k.Verb(), k.Title(), k.Path())
	}
}
