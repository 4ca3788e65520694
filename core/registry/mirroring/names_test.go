package mirroring_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// TestNamesThatMirrorsMayNotTake checks that reserved names and those of people are refused, that
// what was taken of them before ends, and that it comes back when the rule ends (contract C-71).
func TestNamesThatMirrorsMayNotTake(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{})
	fx.grant(registry.ActionPublish, "*")
	fx.upstream.entries = append(active("com.corp/x", "com.free/x", "com.secret/x", "COM.SECRET/y"),
		entry("com.corp/x", "2.0.0", registry.StatusDeprecated, ""))
	secret := []string{
		"refused COM.SECRET/y: COM.SECRET/y is in the reserved namespace com.secret/*",
		"refused com.secret/x: com.secret/x is in the reserved namespace com.secret/*",
	}
	fx.wantSync(mirroring.Options{},
		append(secret, "added com.corp/x@1.0.0", "added com.corp/x@2.0.0", "added com.free/x@1.0.0")...)
	if got := fx.state().Refused.String(); got != "reserved 2" {
		t.Errorf("refused are %q", got)
	}
	fx.wantEvents("published com.corp/x@1.0.0", "published com.free/x@1.0.0", "published com.corp/x@2.0.0")

	fx.grant(registry.ActionPublish, "com.corp/*")
	granted := "refused com.corp/x: people may publish com.corp/x here, by a grant over com.corp/*: a mirror takes it only with an --include that names its namespace"
	fx.upstream.changed = []recordsource.Entry{}
	fx.wantSync(mirroring.Options{}) // nothing of it is in the list
	fx.clock.Advance(24 * time.Hour)
	s := fx.wantSync(mirroring.Options{}, secret[0], granted, secret[1], "status com.corp/x@1.0.0: deleted",
		"status com.corp/x@2.0.0: deleted")
	if got := fx.state().Refused.String(); got != "granted 1, reserved 2" || s.Servers != 1 {
		t.Errorf("refused are %q, the summary %+v", got, s)
	}
	fx.wantListed("com.corp/x@1.0.0 deleted", "com.corp/x@2.0.0 deleted", "com.free/x@1.0.0 active")
	fx.wantEvents("status com.corp/x@1.0.0", "status com.corp/x@2.0.0")
	fx.wantSync(mirroring.Options{Full: true}, secret[0], granted, secret[1])

	if err := fx.grants.Remove(t.Context(), registry.GrantRecord{Grant: registry.Grant{
		Holder: "ada", Action: registry.ActionPublish, Pattern: fx.pattern("com.corp/*"),
	}}); err != nil {
		t.Fatal(err)
	}
	s = fx.wantSync(mirroring.Options{Full: true},
		append(secret, "status com.corp/x@1.0.0: active", "status com.corp/x@2.0.0: deprecated")...)
	if s.Servers != 2 {
		t.Errorf("the summary is %+v", s)
	}
}

func TestIncludeNamesNamespacesOfPeople(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, false, mirror.Draft{Include: []string{"*", "com.corp/*"}})
	fx.grant(registry.ActionPublish, "com.corp/*")
	fx.grant(registry.ActionEdit, "com.other/*")
	fx.publishLocal("com.other/local", "1.0.0")
	fx.upstream.entries = active("com.corp/x", "com.free/x", "com.other/local", "com.other/x")
	fx.wantSync(mirroring.Options{},
		"shadowed com.other/local: com.other/local was published here, and what is here comes first",
		"refused com.other/x: people may publish com.other/x here, by a grant over com.other/*: "+
			"a mirror takes it only with an --include that names its namespace", "added com.corp/x@1.0.0",
		"added com.free/x@1.0.0")
}
