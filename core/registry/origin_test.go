package registry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func corpOrigin() Origin {
	return Origin{Mirror: "corp", URL: "https://registry.example.com", FetchedAt: epoch}
}

func upstreamVersion(version string, s Status, document bool) Upstream {
	return Upstream{
		Release:  Release{Version: Version{version}, Status: s, PublishedAt: epoch.AddDate(-1, 0, len(version))},
		Document: document,
	}
}

func TestMirrorAddsReplacesAndChangesStatus(t *testing.T) {
	t.Parallel()
	l := NewLineage(weather, nil)
	changes, errs := l.Mirror(corpOrigin(), []Upstream{
		upstreamVersion("1.0.0", StatusActive, true), upstreamVersion("2.0.0-rc1", StatusDeprecated, true),
		upstreamVersion("0.9.0", StatusDeleted, true),
	}, epoch)
	if !slices.Equal(changes, []MirrorChange{MirrorAdded, MirrorAdded, MirrorAdded}) || errs[0] != nil {
		t.Fatalf("Mirror = %v, %v", changes, errs)
	}
	stored := l.Changes()
	later := corpOrigin()
	later.FetchedAt = epoch.Add(time.Hour)
	l = NewLineage(weather, stored)
	changes, _ = l.Mirror(later, []Upstream{
		upstreamVersion("1.0.0", StatusActive, true), upstreamVersion("2.0.0-rc1", StatusActive, false),
		upstreamVersion("0.9.0", StatusDeleted, false),
	}, epoch.Add(time.Hour))
	if !slices.Equal(changes, []MirrorChange{MirrorReplaced, MirrorStatus, MirrorNothing}) {
		t.Fatalf("the second Mirror = %v", changes)
	}
	for _, r := range l.current {
		want, changed := corpOrigin(), r.Version.value != "0.9.0"
		if r.Version.value == "1.0.0" {
			want = later
		}
		if r.Origin != want || changed != r.UpdatedAt.After(epoch.Add(time.Minute)) || r.PublishedAt.After(epoch) {
			t.Errorf("%s = %+v, want the origin %v", r.Version, r, want)
		}
	}
}

func TestMirroredServersDoNotChangeHere(t *testing.T) {
	t.Parallel()
	mirrored := NewLineage(weather, nil)
	mirrored.Mirror(corpOrigin(), []Upstream{upstreamVersion("1.0.0", StatusActive, true)}, epoch)
	stored := mirrored.Changes()
	one := Version{"1.0.0"}
	for name, change := range map[string]func(l *Lineage) error{
		"Publish": func(l *Lineage) error { _, err := l.Publish(Version{"2.0.0"}, epoch); return err },
		"Replace": func(l *Lineage) error { _, err := l.Replace(one, epoch); return err },
		"Delete":  func(l *Lineage) error { _, err := l.Delete(one, epoch); return err },
		"SetStatus": func(l *Lineage) error {
			_, err := l.SetStatus(one, StatusUpdate{status: StatusDeprecated}, epoch)
			return err
		},
		"SetStatusAll": func(l *Lineage) error {
			_, err := l.SetStatusAll(StatusUpdate{status: StatusDeprecated}, epoch)
			return err
		},
		"Import": func(l *Lineage) error {
			_, errs := l.Import([]Release{recordedRelease("3.0.0", epoch)}, epoch)
			return errs[0]
		},
	} {
		l := NewLineage(weather, stored)
		if err := change(l); !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "the mirror corp") ||
			len(l.Changes()) > 0 {
			t.Errorf("%s returned %v and changed %v", name, err, l.Changes())
		}
	}
	l := NewLineage(weather, stored)
	if _, _, err := l.Quarantine(Quarantined{Version: one, Reason: "malware"}, epoch); err != nil {
		t.Errorf("Quarantine returned %v", err)
	}
	if _, errs := l.Mirror(corpOrigin(), []Upstream{upstreamVersion("1.0.0", StatusActive, true)},
		epoch); !fault.Is(errs[0], fault.Forbidden) {
		t.Errorf("Mirror of a version in quarantine returned %v", errs[0])
	}
}

func TestMirrorLeavesOtherServers(t *testing.T) {
	t.Parallel()
	local := NewLineage(weather, nil)
	_, _ = local.Publish(Version{"1.0.0"}, epoch)
	other := NewLineage(weather, nil)
	other.Mirror(Origin{Mirror: "other"}, []Upstream{upstreamVersion("1.0.0", StatusActive, true)}, epoch)
	for want, l := range map[string]*Lineage{"published here": local, "the mirror other": other} {
		l = NewLineage(weather, l.Changes())
		_, errs := l.Mirror(corpOrigin(), []Upstream{upstreamVersion("2.0.0", StatusActive, true)}, epoch)
		if !fault.Is(errs[0], fault.Conflict) || !strings.Contains(errs[0].Error(), want) || len(l.Changes()) > 0 {
			t.Errorf("Mirror returned %v, want %q; it changed %v", errs[0], want, l.Changes())
		}
	}
}

// TestMirrorFollowsUpstream gives a lineage any sequence of lists. After each, every version has
// the status of the list that had it last, one version is the latest, what changed has a later
// update time than everything before, and a list that was taken already changes nothing.
func TestMirrorFollowsUpstream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stored []Release
		upstream := map[Version]Status{}
		now := epoch
		for range rapid.IntRange(1, 6).Draw(t, "lists") {
			var list []Upstream
			for _, v := range rapid.SliceOfNDistinct(drawVersions(), 1, 5, rapid.ID).Draw(t, "versions") {
				s := drawStatuses().Draw(t, "status")
				_, known := upstream[Version{v}]
				list = append(list, upstreamVersion(v, s, !known || rapid.Bool().Draw(t, "document")))
				upstream[Version{v}] = s
			}
			now = now.Add(time.Duration(rapid.IntRange(-10, 10).Draw(t, "seconds")) * time.Second)
			l := NewLineage(weather, stored)
			latest := l.changeTime(now)
			if _, errs := l.Mirror(corpOrigin(), list, now); errs[0] != nil {
				t.Fatal(errs)
			}
			for _, r := range l.Changes() {
				if r.UpdatedAt.Before(latest) {
					t.Fatalf("%+v was updated before %v", r, latest)
				}
			}
			stored = l.current
			requireOneLatest(t, l)
			for _, r := range stored {
				if r.Status != upstream[r.Version] || r.Origin.Mirror != "corp" {
					t.Fatalf("%+v has not the status %s", r, upstream[r.Version])
				}
			}
			for i := range list {
				list[i].Document = false
			}
			again := NewLineage(weather, stored)
			if again.Mirror(corpOrigin(), list, now.Add(time.Hour)); len(again.Changes()) > 0 {
				t.Fatalf("the same list changed %v", again.Changes())
			}
		}
	})
}
