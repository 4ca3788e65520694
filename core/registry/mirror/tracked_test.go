package mirror

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

func newTracked(t *testing.T) Tracked {
	t.Helper()
	name, err := registry.ParseName("com.example/a")
	if err != nil {
		t.Fatal(err)
	}
	v, err := registry.ParseVersion("1.0.0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if got := one.Upstream(true); got != want {
		t.Errorf("Upstream = %+v, want %+v", got, want)
	}
	want.Document = false
	if got := one.Upstream(false); got != want {
		t.Errorf("Upstream of a known document = %+v, want %+v", got, want)
	}
	for status, want := range map[registry.Status]bool{
		registry.StatusActive: true, registry.StatusDeprecated: true, registry.StatusDeleted: false,
	} {
		one.Status = status
		if one.IsListed() != want {
			t.Errorf("a version with the status %s is listed: %t", status, one.IsListed())
		}
	}
}
