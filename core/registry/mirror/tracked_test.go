package mirror

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newTracked(t *testing.T) Tracked {
	t.Helper()
	name, err := registry.ParseName("com.example/a")
	must.Succeed(t, err)
	v, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	return Tracked{
		Name: name, Version: v, Hash: [32]byte{1}, Status: registry.StatusDeprecated, Message: "use another one",
		PublishedAt: epoch, Review: "r",
	}
}

// TestUpstream checks what the lineage of a server learns of a version.
func TestUpstream(t *testing.T) {
	t.Parallel()
	one := newTracked(t)
	want := registry.Upstream{Document: true, Release: registry.Release{
		Name: one.Name, Version: one.Version, Status: registry.StatusDeprecated, StatusMessage: "use another one",
		PublishedAt: epoch,
	}}
	wantEqual(t, one.Upstream(true), want, "Upstream")
	want.Document = false
	wantEqual(t, one.Upstream(false), want, "Upstream of a known document")
	for status, want := range map[registry.Status]bool{
		registry.StatusActive: true, registry.StatusDeprecated: true, registry.StatusDeleted: false,
	} {
		one.Status = status
		wantEqual(t, one.IsListed(), want, "a version with the status %s is listed", status)
	}
}
