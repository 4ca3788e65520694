package registry

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
)

var weather, _ = ParseName("com.example/weather")

func TestPublish(t *testing.T) {
	t.Parallel()
	l := NewLineage(weather, nil)
	first, err := l.Publish(Version{"1.0.0"}, epoch.Add(999))
	want := Release{
		Name: weather, Version: Version{"1.0.0"}, Status: StatusActive, StatusChangedAt: epoch, PublishedAt: epoch,
		UpdatedAt: epoch, Latest: true,
	}
	if err != nil || first != want {
		t.Fatalf("Publish = %+v, %v, want %+v", first, err, want)
	}
	l = NewLineage(weather, []Release{first})
	second, err := l.Publish(Version{"0.9.0"}, epoch.Add(-time.Hour))
	if err != nil || second.Latest || !second.PublishedAt.Equal(epoch.Add(time.Microsecond)) {
		t.Errorf("an older version, by a clock that is behind: %+v, %v, want it behind the first and not latest",
			second, err)
	}
	if got := l.Changes(); len(got) != 1 || got[0] != second {
		t.Errorf("Changes = %+v, want the new version alone", got)
	}
	third, err := l.Publish(Version{"2.0.0"}, epoch.Add(time.Hour))
	if err != nil || !third.Latest {
		t.Fatalf("Publish = %+v, %v, want it latest", third, err)
	}
	changes := l.Changes()
	if len(changes) != 3 || changes[0].Latest || !changes[0].UpdatedAt.Equal(third.PublishedAt) ||
		!changes[0].StatusChangedAt.Equal(epoch) {
		t.Errorf("Changes = %+v, want the former latest with a new update time", changes)
	}
}

func TestPublishConflicts(t *testing.T) {
	t.Parallel()
	l := NewLineage(weather, []Release{
		{Name: weather, Version: Version{"1.0.0"}, Status: StatusDeleted, Latest: true, PublishedAt: epoch},
	})
	if _, err := l.Publish(Version{"1.0.0"}, epoch); !fault.Is(err, fault.Conflict) {
		t.Errorf("a deleted version again: %v, want a conflict", err)
	}
	if _, err := l.Publish(Version{"v1.0.0"}, epoch); err != nil {
		t.Errorf("a version written otherwise: %v, want none", err)
	}
	full := make([]Release, MaxVersions)
	for i := range full {
		full[i] = Release{
			Name: weather, Version: Version{strconv.Itoa(i)}, PublishedAt: epoch.Add(time.Duration(i) * time.Second),
		}
	}
	l = NewLineage(weather, full)
	if _, err := l.Publish(Version{"1.0.0"}, epoch); !fault.Is(err, fault.Conflict) {
		t.Errorf("one version too many: %v, want a conflict", err)
	}
	l = NewLineage(weather, full[1:])
	if _, err := l.Publish(Version{"1.0.0"}, epoch); err != nil {
		t.Errorf("the last version allowed: %v, want none", err)
	}
}

func TestReplaceMovesTheUpdateTimeOnly(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0", "2.0.0")
	before := l.stored[0]
	got, err := l.Replace(Version{"1.0.0"}, epoch.Add(time.Hour))
	before.UpdatedAt = epoch.Add(time.Hour)
	if err != nil || got != before {
		t.Errorf("Replace = %+v, %v, want %+v", got, err, before)
	}
	if changes := l.Changes(); len(changes) != 1 {
		t.Errorf("Changes = %+v, want one", changes)
	}
	if _, err := l.Replace(Version{"3.0.0"}, epoch); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing version: %v, want not found", err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0", "2.0.0")
	at := epoch.Add(time.Hour)
	got, err := l.Delete(Version{"2.0.0"}, at)
	if err != nil || got.Status != StatusDeleted || got.Latest || !got.StatusChangedAt.Equal(at) ||
		!got.UpdatedAt.Equal(at) {
		t.Errorf("Delete = %+v, %v", got, err)
	}
	if changes := l.Changes(); len(changes) != 2 || !changes[0].Latest || !changes[0].UpdatedAt.Equal(at) {
		t.Errorf("Changes = %+v, want 1.0.0 latest with a new update time", changes)
	}
	for name, act := range map[string]func() (Release, error){
		"delete again":    func() (Release, error) { return l.Delete(Version{"2.0.0"}, at) },
		"delete missing":  func() (Release, error) { return l.Delete(Version{"3.0.0"}, at) },
		"replace deleted": func() (Release, error) { return l.Replace(Version{"2.0.0"}, at) },
		"status missing": func() (Release, error) {
			return l.SetStatus(Version{"3.0.0"}, StatusUpdate{status: StatusActive}, at)
		},
	} {
		if _, err := act(); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	last, err := l.Delete(Version{"1.0.0"}, at)
	if err != nil || last.Latest {
		t.Errorf("the last living version: %+v, %v, want the flag on the greatest of the deleted", last, err)
	}
}

func TestDeleteClearsTheMessage(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0")
	if _, err := l.SetStatus(Version{"1.0.0"}, StatusUpdate{StatusDeprecated, "use 2"}, epoch); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Delete(Version{"1.0.0"}, epoch); err != nil || got.StatusMessage != "" {
		t.Errorf("Delete = %+v, %v, want no message", got, err)
	}
}

func TestSetStatus(t *testing.T) {
	t.Parallel()
	steps := []struct {
		update    StatusUpdate
		unchanged bool // the fault for it
		moves     bool // statusChangedAt
	}{
		{update: StatusUpdate{StatusActive, ""}, unchanged: true},
		{update: StatusUpdate{StatusDeprecated, "use 2"}, moves: true},
		{update: StatusUpdate{StatusDeprecated, "use 2"}, unchanged: true},
		{update: StatusUpdate{StatusDeprecated, "use 3"}},
		{update: StatusUpdate{StatusDeprecated, ""}},
		{update: StatusUpdate{StatusDeleted, ""}, moves: true},
		{update: StatusUpdate{StatusDeleted, ""}, unchanged: true},
		{update: StatusUpdate{StatusActive, ""}, moves: true},
		{update: StatusUpdate{StatusDeleted, "gone"}, moves: true},
		{update: StatusUpdate{StatusDeprecated, "gone"}, moves: true},
	}
	l := publishedLineage(t, "1.0.0")
	for i, s := range steps {
		now, before := epoch.Add(time.Duration(i+1)*time.Hour), l.current[0]
		got, err := l.SetStatus(Version{"1.0.0"}, s.update, now)
		if s.unchanged {
			if !fault.Is(err, fault.Invalid) || l.current[0] != before {
				t.Errorf("step %d: %v, want the fault and nothing changed", i, err)
			}
			continue
		}
		want := before
		want.Status, want.StatusMessage, want.UpdatedAt = s.update.status, s.update.message, now
		if s.moves {
			want.StatusChangedAt = now
		}
		if err != nil || got != want {
			t.Errorf("step %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
}

func TestSetStatusAll(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0", "2.0.0", "3.0.0")
	if _, err := l.SetStatus(Version{"2.0.0"}, StatusUpdate{StatusDeleted, ""}, epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	l = NewLineage(weather, l.current)
	got, err := l.SetStatusAll(StatusUpdate{StatusDeleted, ""}, epoch.Add(2*time.Hour))
	if err != nil || len(got) != 2 || got[0].Version.value != "3.0.0" || got[1].Version.value != "1.0.0" ||
		!got[0].Latest {
		t.Errorf("SetStatusAll = %+v, %v, want 3.0.0, which is latest, and 1.0.0", got, err)
	}
	if _, err := l.SetStatusAll(StatusUpdate{StatusDeleted, ""}, epoch); !fault.Is(err, fault.Invalid) {
		t.Errorf("none to change: %v, want a fault of kind Invalid", err)
	}
	if _, err := NewLineage(weather, nil).SetStatusAll(StatusUpdate{StatusDeleted, ""}, epoch); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("no versions: %v, want not found", err)
	}
}

// TestMovedFlagIsNotReturned: a version whose latest flag moved is stored, but is not among those
// whose status changed.
func TestMovedFlagIsNotReturned(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0", "2.0.0")
	if _, err := l.Delete(Version{"2.0.0"}, epoch); err != nil {
		t.Fatal(err)
	}
	l = NewLineage(weather, l.current)
	got, err := l.SetStatusAll(StatusUpdate{StatusDeleted, ""}, epoch)
	if err != nil || len(got) != 1 || got[0].Version.value != "1.0.0" || got[0].Latest {
		t.Errorf("SetStatusAll = %+v, %v, want 1.0.0 alone", got, err)
	}
	if changes := l.Changes(); len(changes) != 2 || !changes[1].Latest {
		t.Errorf("Changes = %+v, want the turned flag of 2.0.0 as well", changes)
	}
}

// TestOneIsLatest: after every change, exactly one version is latest, no other version outranks it,
// publication times rise, and update times never go back.
func TestOneIsLatest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var releases []Release
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			l := NewLineage(weather, releases)
			now := epoch.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "now")) * time.Microsecond)
			version := Version{drawVersions().Draw(t, "version")}
			update := StatusUpdate{status: drawStatuses().Draw(t, "status")}
			var err error
			switch rapid.IntRange(0, 4).Draw(t, "act") {
			case 0, 1:
				_, err = l.Publish(version, now)
			case 2:
				_, err = l.Delete(version, now)
			case 3:
				_, err = l.SetStatus(version, update, now)
			case 4:
				_, err = l.SetStatusAll(update, now)
			}
			if err != nil && len(l.Changes()) > 0 {
				t.Fatalf("after %v there are changes %+v, want none", err, l.Changes())
			}
			requireSound(t, releases, l)
			releases = l.current
		}
	})
}

func requireSound(t *rapid.T, before []Release, l *Lineage) {
	latest := slices.DeleteFunc(slices.Clone(l.current), func(r Release) bool { return !r.Latest })
	if len(l.current) > 0 && len(latest) != 1 {
		t.Fatalf("%d versions are latest in %+v", len(latest), l.current)
	}
	for i, r := range l.current {
		if outranks(r, latest[0]) {
			t.Fatalf("%+v outranks the latest %+v", r, latest[0])
		}
		if i > 0 && !r.PublishedAt.After(l.current[i-1].PublishedAt) {
			t.Fatalf("%+v was not published after %+v", r, l.current[i-1])
		}
		if i < len(before) && r != before[i] && !r.UpdatedAt.After(before[i].UpdatedAt) {
			t.Fatalf("%+v changed into %+v without a later update time", before[i], r)
		}
		if r.PublishedAt.Nanosecond()%1000 != 0 || r.UpdatedAt.Nanosecond()%1000 != 0 {
			t.Fatalf("%+v has more than microseconds", r)
		}
	}
}

// TestLatestIsIndependentOfOrder: the order of publication decides only between versions of equal
// precedence.
func TestLatestIsIndependentOfOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfNDistinct(rapid.StringMatching(`(0|[1-9])\.(0|[1-9])\.(0|[1-9])(-(a|b|[0-9]))?`), 1, 8,
			rapid.ID).Draw(t, "versions")
		shuffled := rapid.Permutation(set).Draw(t, "shuffled")
		if a, b := latestOf(t, set), latestOf(t, shuffled); a != b {
			t.Fatalf("%v makes %s latest, %v makes %s", set, a, shuffled, b)
		}
	})
}

func latestOf(t *rapid.T, versions []string) string {
	l := NewLineage(weather, nil)
	for _, v := range versions {
		if _, err := l.Publish(Version{v}, epoch); err != nil {
			t.Fatal(err)
		}
	}
	return l.current[slices.IndexFunc(l.current, func(r Release) bool { return r.Latest })].Version.value
}

func publishedLineage(t *testing.T, versions ...string) *Lineage {
	t.Helper()
	l := NewLineage(weather, nil)
	for _, v := range versions {
		if _, err := l.Publish(Version{v}, epoch); err != nil {
			t.Fatal(err)
		}
	}
	return NewLineage(weather, l.current)
}
