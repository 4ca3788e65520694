package registry

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func recordedRelease(version string, published time.Time) Release {
	return Release{
		Name: weather, Version: Version{version}, Status: StatusActive,
		StatusChangedAt: published, PublishedAt: published, UpdatedAt: published,
	}
}

func TestImportKeepsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	old := epoch.AddDate(-1, 0, 0)
	one := Release{
		Version: Version{"1.0.0"}, Status: StatusDeprecated, StatusMessage: "use 2",
		PublishedAt: old, UpdatedAt: old.Add(2 * time.Hour), StatusChangedAt: old.Add(time.Hour), Latest: true,
	}
	two := recordedRelease("2.0.0", old.Add(time.Minute))
	l := NewLineage(weather, nil)
	got, errs := l.Import([]Release{one, two}, epoch)
	one.Name, one.Latest, two.Latest = weather, false, true
	if errs[0] != nil || errs[1] != nil || !slices.Equal(got, []Release{one, two}) {
		t.Fatalf("Import = %+v, %v, want %+v and %+v", got, errs, one, two)
	}
	if changes := l.Changes(); !slices.Equal(changes, got) {
		t.Errorf("Changes = %+v, want both", changes)
	}
}

func TestImportCompletesTimes(t *testing.T) {
	t.Parallel()
	old := epoch.AddDate(-1, 0, 0)
	for name, c := range map[string]struct{ given, want Release }{
		"none": {
			Release{Status: StatusActive},
			Release{Status: StatusActive, PublishedAt: epoch, UpdatedAt: epoch, StatusChangedAt: epoch},
		},
		"publication alone": {
			Release{Status: StatusActive, PublishedAt: old.Add(999)},
			Release{Status: StatusActive, PublishedAt: old, UpdatedAt: old, StatusChangedAt: old},
		},
		"status changed at the last update": {
			Release{Status: StatusDeleted, PublishedAt: old, UpdatedAt: epoch},
			Release{Status: StatusDeleted, PublishedAt: old, UpdatedAt: epoch, StatusChangedAt: epoch},
		},
		"times before the publication": {
			Release{Status: StatusDeleted, PublishedAt: epoch, UpdatedAt: old, StatusChangedAt: old},
			Release{Status: StatusDeleted, PublishedAt: epoch, UpdatedAt: epoch, StatusChangedAt: epoch},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.given.Version, c.want.Version = Version{"1"}, Version{"1"}
			c.want.Name, c.want.Latest = weather, true
			got, errs := NewLineage(weather, nil).Import([]Release{c.given}, epoch.Add(7))
			if errs[0] != nil || got[0] != c.want {
				t.Errorf("Import = %+v, %v, want %+v", got, errs, c.want)
			}
		})
	}
}

func TestImportPartsEqualPublicationTimes(t *testing.T) {
	t.Parallel()
	got, _ := NewLineage(weather, nil).Import([]Release{
		recordedRelease("a", epoch), recordedRelease("b", epoch), recordedRelease("c", epoch.Add(time.Microsecond)),
	}, epoch)
	for i, r := range got {
		if want := epoch.Add(time.Duration(i) * time.Microsecond); !r.PublishedAt.Equal(want) ||
			!r.UpdatedAt.Equal(want) || r.Latest != (i == 2) {
			t.Errorf("%+v, want it published at %v", r, want)
		}
	}
}

func TestImportNextToOthers(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0")
	before := l.stored[0]
	old := epoch.AddDate(-1, 0, 0)
	got, errs := l.Import([]Release{
		recordedRelease("2.0.0", old), recordedRelease("1.0.0", old), recordedRelease("2.0.0", old),
	}, epoch.Add(time.Hour))
	if errs[0] != nil || !got[0].Latest || !got[0].UpdatedAt.Equal(old) {
		t.Errorf("2.0.0 is %+v, %v, want it latest and its times kept", got[0], errs[0])
	}
	if !fault.Is(errs[1], fault.Conflict) || !fault.Is(errs[2], fault.Conflict) {
		t.Errorf("versions that are here: %v, %v, want conflicts", errs[1], errs[2])
	}
	before.Latest, before.UpdatedAt = false, epoch.Add(time.Hour)
	if changes := l.Changes(); len(changes) != 2 || changes[0] != before {
		t.Errorf("Changes = %+v, want the former latest with a new update time, and 2.0.0", changes)
	}
}

func TestImportIsBounded(t *testing.T) {
	t.Parallel()
	many := make([]Release, MaxVersions+1)
	for i := range many {
		many[i] = recordedRelease(strconv.Itoa(i), epoch.Add(time.Duration(i)*time.Second))
	}
	_, errs := NewLineage(weather, nil).Import(many, epoch)
	if errs[MaxVersions-1] != nil || !fault.Is(errs[MaxVersions], fault.Conflict) {
		t.Errorf("errors of the last two: %v, %v, want the last one too many", errs[MaxVersions-1], errs[MaxVersions])
	}
}

// TestImportedIsSound: after every import, exactly one version is latest and no other version
// outranks it, no two were published at the same time, and importing the same again changes
// nothing.
func TestImportedIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var releases []Release
		for range rapid.IntRange(1, 3).Draw(t, "imports") {
			in := rapid.SliceOfN(rapid.Custom(drawRecorded), 0, 8).Draw(t, "in")
			l := NewLineage(weather, releases)
			got, errs := l.Import(in, epoch)
			requireOneLatest(t, l)
			for i, r := range got {
				if errs[i] == nil && !in[i].PublishedAt.IsZero() && in[i].UpdatedAt.After(r.PublishedAt) &&
					!r.UpdatedAt.Equal(in[i].UpdatedAt) {
					t.Fatalf("%+v came in as %+v", in[i], r)
				}
			}
			for i, r := range releases {
				if now := l.current[i]; now != r && (now.Latest == r.Latest || !now.UpdatedAt.After(r.UpdatedAt)) {
					t.Fatalf("%+v became %+v", r, now)
				}
			}
			again := NewLineage(weather, l.current)
			if _, errs := again.Import(in, epoch.Add(time.Hour)); slices.Contains(errs, nil) ||
				len(again.Changes()) > 0 {
				t.Fatalf("the same import again: %v, changes %+v", errs, again.Changes())
			}
			releases = l.current
		}
	})
}

// TestImportRestores: all versions of a server, in any order, make the same server elsewhere.
func TestImportRestores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := NewLineage(weather, nil)
		_, _ = l.Import(rapid.SliceOfN(rapid.Custom(drawRecorded), 1, 8).Draw(t, "in"), epoch)
		for i := range rapid.IntRange(0, 4).Draw(t, "changes") {
			version := rapid.SampledFrom(l.current).Draw(t, "changed").Version
			_, _ = l.SetStatus(version, StatusUpdate{status: drawStatuses().Draw(t, "status")},
				epoch.Add(time.Duration(i)*time.Hour))
		}
		shuffled := rapid.Permutation(l.current).Draw(t, "shuffled")
		got, _ := NewLineage(weather, nil).Import(shuffled, epoch.Add(100*time.Hour))
		if !slices.Equal(got, shuffled) {
			t.Fatalf("%+v came in as %+v", shuffled, got)
		}
	})
}

func drawRecorded(t *rapid.T) Release {
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "known") {
			return epoch.Add(time.Duration(rapid.IntRange(-6, 6).Draw(t, "offset")) * time.Microsecond)
		}
		return time.Time{}
	})
	return Release{
		Version: Version{drawVersions().Draw(t, "version")}, Status: drawStatuses().Draw(t, "status"),
		Latest:      rapid.Bool().Draw(t, "latest"),
		PublishedAt: instant.Draw(t, "published"), UpdatedAt: instant.Draw(t, "updated"),
		StatusChangedAt: instant.Draw(t, "changed"),
	}
}

func requireOneLatest(t *rapid.T, l *Lineage) {
	latest := slices.DeleteFunc(slices.Clone(l.current), func(r Release) bool { return !r.Latest })
	if len(l.current) > 0 && len(latest) != 1 {
		t.Fatalf("%d versions are latest in %+v", len(latest), l.current)
	}
	times := make(map[time.Time]bool)
	for _, r := range l.current {
		if outranks(r, latest[0]) {
			t.Fatalf("%+v outranks the latest %+v", r, latest[0])
		}
		if times[r.PublishedAt] || r.PublishedAt.IsZero() || r.UpdatedAt.Before(r.PublishedAt) ||
			r.StatusChangedAt.Before(r.PublishedAt) {
			t.Fatalf("the times of %+v are wrong", r)
		}
		times[r.PublishedAt] = true
	}
}

func TestTolerated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"no fault": {`{"name":"com.example/weather","description":"Forecasts","version":"1.0.0"}`, true},
		"empty repository": {
			`{"name":"com.example/weather","description":"Forecasts","version":"1.0.0","repository":{}}`, true,
		},
		"nothing else": {`{"name":"com.example/weather","version":"1.0.0"}`, true},
		"remotes of any kind": {
			`{"name":"com.example/weather","version":"1.0.0","remotes":[7,{},{"url":7},{"url":"https://a.example/"}]}`,
			true,
		},
		"no version":   {`{"name":"com.example/weather"}`, false},
		"a range":      {`{"name":"com.example/weather","version":"^1.0.0"}`, false},
		"a bad name":   {`{"name":"weather","version":"1.0.0"}`, false},
		"a name twice": {`{"name":"com.example/weather","version":"1.0.0","icons":[{"src":"a","src":"b"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draft, err := ParseDraft([]byte(c.body))
			must.Succeed(t, err)
			doc, err := draft.ImportedDocument()
			if (err == nil) != c.ok || err == nil && string(doc.Bytes()) != c.body {
				t.Errorf("Tolerated = %s, %v", doc.Bytes(), err)
			}
			if err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("the fault is %v", err)
			}
			if name == "remotes of any kind" && !slices.Equal(doc.Remotes(), []RemoteURL{"https://a.example/"}) {
				t.Errorf("remotes are %v", doc.Remotes())
			}
		})
	}
}
