package mirror

import (
	"testing"
	"time"

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

// TestSameState checks that each part of the state counts, and the review does not.
func TestSameState(t *testing.T) {
	t.Parallel()
	one := newTracked(t)
	other, err := registry.ParseVersion("2.0.0")
	must.Succeed(t, err)
	for what, c := range map[string]struct {
		change func(*Tracked)
		same   bool
	}{
		"nothing":       {func(*Tracked) {}, true},
		"the review":    {func(u *Tracked) { u.Review = "" }, true},
		"the time zone": {func(u *Tracked) { u.PublishedAt = epoch.In(time.FixedZone("east", 3600)) }, true},
		"the version":   {func(u *Tracked) { u.Version = other }, false},
		"the hash":      {func(u *Tracked) { u.Hash[31] = 1 }, false},
		"the status":    {func(u *Tracked) { u.Status = registry.StatusActive }, false},
		"the message":   {func(u *Tracked) { u.Message = "" }, false},
		"the time":      {func(u *Tracked) { u.PublishedAt = time.Time{} }, false},
	} {
		u := one
		c.change(&u)
		if one.SameState(&u) != c.same || u.SameState(&one) != c.same {
			t.Errorf("%s differs: the same state is %t, want %t", what, one.SameState(&u), c.same)
		}
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
