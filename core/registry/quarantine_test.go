package registry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestParseReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "reason must say why, in words"},
		"blank": {" \t\n", "reason must say why, in words"},
		"a NUL": {"a\x00", "reason must not contain a NUL"},
		"too long": {
			strings.Repeat("ä", MaxStatusMessage+1), "reason must have at most 500 characters, and has 501",
		},
		"the longest":  {strings.Repeat("ä", MaxStatusMessage), ""},
		"a usual text": {"it sends what it reads elsewhere", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReason(c.text)
			if c.want == "" && (err != nil || string(got) != c.text) {
				t.Errorf("ParseReason = %q, %v", got, err)
			}
			if c.want != "" && (!fault.Is(err, fault.Invalid) || err.Error() != c.want || got != "") {
				t.Errorf("ParseReason = %q, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestFindQuarantine(t *testing.T) {
	t.Parallel()
	whole, one := Quarantined{Name: weather, Reason: "all"}, Quarantined{
		Name: weather, Version: Version{"1.0.0"}, Reason: "one",
	}
	for name, c := range map[string]struct {
		entries []Quarantined
		version string
		want    string
	}{
		"no entry":                  {nil, "1.0.0", ""},
		"its own":                   {[]Quarantined{one}, "1.0.0", "com.example/weather 1.0.0 is in quarantine: one"},
		"of another version":        {[]Quarantined{one}, "2.0.0", ""},
		"the server of one version": {[]Quarantined{one}, "", ""},
		"of the server":             {[]Quarantined{whole}, "2.0.0", "com.example/weather is in quarantine: all"},
		"its own before the server's": {
			[]Quarantined{whole, one}, "1.0.0", "com.example/weather 1.0.0 is in quarantine: one",
		},
		"another one, and of a server": {
			[]Quarantined{one, whole}, "2.0.0", "com.example/weather is in quarantine: all",
		},
		"the server": {[]Quarantined{one, whole}, "", "com.example/weather is in quarantine: all"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckQuarantine(c.entries, Version{c.version})
			if (c.want == "") != (err == nil) ||
				err != nil && (!fault.Is(err, fault.Forbidden) || err.Error() != c.want) {
				t.Errorf("CheckQuarantine = %v, want %q", err, c.want)
			}
		})
	}
}

func TestQuarantineOfOneVersion(t *testing.T) {
	t.Parallel()
	l := publishedLineage(t, "1.0.0", "2.0.0")
	at := epoch.Add(time.Hour)
	q, prior, err := l.Quarantine(Quarantined{Version: Version{"2.0.0"}, Reason: "bad", By: "u"}, at.Add(999))
	if want := (Quarantined{weather, Version{"2.0.0"}, "bad", at, "u"}); err != nil || q != want {
		t.Fatalf("Quarantine = %+v, %v, want %+v", q, err, want)
	}
	before := l.stored[1]
	if want := []PriorStatus{{Version{"2.0.0"}, StatusActive, "", before.StatusChangedAt}}; !slices.Equal(prior, want) {
		t.Errorf("prior statuses = %+v, want %+v", prior, want)
	}
	before.Status, before.StatusMessage, before.StatusChangedAt, before.UpdatedAt, before.Latest = StatusDeleted, "bad",
		at, at, false
	if l.current[1] != before || !l.current[0].Latest {
		t.Errorf("after it: %+v, want %+v and 1.0.0 latest", l.current, before)
	}
}

func TestQuarantineIsRefused(t *testing.T) {
	t.Parallel()
	releases := publishedLineage(t, "1.0.0", "2.0.0").current
	one, whole := Quarantined{Name: weather, Version: Version{"1.0.0"}, Reason: "one"}, Quarantined{
		Name: weather, Reason: "all",
	}
	for name, c := range map[string]struct {
		lineage *Lineage
		version string
		kind    fault.Kind
		message string
	}{
		"a missing version":      {NewLineage(weather, releases), "3.0.0", fault.NotFound, "server version not found"},
		"a missing server":       {NewLineage(weather, nil), "", fault.NotFound, "server not found"},
		"a version of no server": {NewLineage(weather, nil), "1.0.0", fault.NotFound, "server version not found"},
		"a version again": {
			NewLineage(weather, releases, whole, one), "1.0.0", fault.Conflict,
			"com.example/weather 1.0.0 is in quarantine already",
		},
		"a server again": {
			NewLineage(weather, releases, whole), "", fault.Conflict, "com.example/weather is in quarantine already",
		},
		"release of what is not there": {
			NewLineage(weather, releases, whole), "1.0.0", fault.NotFound,
			"com.example/weather 1.0.0 is not in quarantine",
		},
		"release of no server": {
			NewLineage(weather, releases, one), "", fault.NotFound, "com.example/weather is not in quarantine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if strings.HasPrefix(name, "release") {
				_, err = c.lineage.Release(Version{c.version}, nil, epoch)
			} else {
				_, _, err = c.lineage.Quarantine(Quarantined{Version: Version{c.version}, Reason: "r"}, epoch)
			}
			if !fault.Is(err, c.kind) || err.Error() != c.message || len(c.lineage.Changes()) > 0 {
				t.Errorf("error %v, changes %+v, want %s and none", err, c.lineage.Changes(), c.message)
			}
		})
	}
}

// TestQuarantineOfVersionAndServer: a version stays deleted until no entry covers it, with the
// reason of its own entry before that of the server.
func TestQuarantineOfVersionAndServer(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"version first, released first": {"+1", "+", "-1", "-"}, "version first, released last": {"+1", "+", "-", "-1"},
		"server first, released first": {"+", "+1", "-", "-1"}, "server first, released last": {"+", "+1", "-1", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newQuarantineState(publishedLineage(t, "1", "2").current)
			s.setStatus(t, "1", StatusUpdate{StatusDeprecated, "old"})
			before := s.releases
			for _, step := range order {
				s.apply(t, step)
				wantReason := map[bool]string{true: "reason of 1", false: "reason of "}[s.has("1")]
				if r := s.releases[0]; len(s.entries) > 0 && (s.has("1") || s.has("")) &&
					(r.Status != StatusDeleted || r.StatusMessage != wantReason) {
					t.Errorf("after %s: %+v, want it deleted because of %s", step, r, wantReason)
				}
				if r := s.releases[1]; (r.Status == StatusDeleted) != s.has("") {
					t.Errorf("after %s: %+v", step, r)
				}
			}
			requireRestored(t, before, s)
		})
	}
}

func TestQuarantinedIsNotChanged(t *testing.T) {
	t.Parallel()
	releases := publishedLineage(t, "1", "2").current
	update, v1, v2, v3 := StatusUpdate{StatusDeprecated, "old"}, Version{"1"}, Version{"2"}, Version{"3"}
	acts := map[string]func(l *Lineage, v Version) error{
		"publish": func(l *Lineage, v Version) error { _, err := l.Publish(v, epoch); return err },
		"replace": func(l *Lineage, v Version) error { _, err := l.Replace(v, epoch); return err },
		"delete":  func(l *Lineage, v Version) error { _, err := l.Delete(v, epoch); return err },
		"status":  func(l *Lineage, v Version) error { _, err := l.SetStatus(v, update, epoch); return err },
		"import": func(l *Lineage, v Version) error {
			_, errs := l.Import([]Release{{Version: v, Status: StatusActive}}, epoch)
			return errs[0]
		},
		"statuses": func(l *Lineage, _ Version) error { _, err := l.SetStatusAll(update, epoch); return err },
	}
	whole := Quarantined{Name: weather, Reason: "all"}
	one, two := Quarantined{Name: weather, Version: v1, Reason: "one"}, Quarantined{
		Name: weather, Version: v2, Reason: "two",
	}
	for name, act := range acts {
		for _, v := range []Version{v1, v3} {
			l := NewLineage(weather, releases, whole)
			if err := act(l, v); !fault.Is(err, fault.Forbidden) || !strings.HasSuffix(err.Error(), ": all") ||
				len(l.Changes()) > 0 {
				t.Errorf("%s of %s of a server in quarantine: %v, %+v", name, v, err, l.Changes())
			}
		}
		l := NewLineage(weather, releases, one, two)
		if err := act(l, v1); !fault.Is(err, fault.Forbidden) || !strings.HasSuffix(err.Error(), ": one") ||
			len(l.Changes()) > 0 {
			t.Errorf("%s of a version in quarantine: %v, %+v", name, err, l.Changes())
		}
		l = NewLineage(weather, releases, one)
		if err := act(l, v2); fault.Is(err, fault.Forbidden) {
			t.Errorf("%s of another version: %v", name, err)
		}
	}
	l := NewLineage(weather, releases, one)
	if changed, err := l.SetStatusAll(update, epoch); err != nil || len(changed) != 1 || changed[0].Version != v2 ||
		l.current[0] != releases[0] {
		t.Errorf("the statuses of all versions = %+v, %v, want version 2 alone", changed, err)
	}
}

// quarantineState is a server with what a store keeps of its quarantine.
type quarantineState struct {
	releases []Release
	entries  []Quarantined
	prior    []PriorStatus
	now      time.Time
}

func newQuarantineState(releases []Release) *quarantineState {
	return &quarantineState{releases: releases, now: epoch.Add(time.Hour)}
}

// fataler is *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (s *quarantineState) lineage() *Lineage {
	s.now = s.now.Add(time.Minute)
	return NewLineage(weather, slices.Clone(s.releases), slices.Clone(s.entries)...)
}

func (s *quarantineState) has(version string) bool {
	return slices.ContainsFunc(s.entries, func(q Quarantined) bool { return q.Version.value == version })
}

func (s *quarantineState) setStatus(t fataler, version string, u StatusUpdate) {
	t.Helper()
	l := s.lineage()
	if _, err := l.SetStatus(Version{version}, u, s.now); err != nil {
		t.Fatalf("SetStatus: %v", err)
	}
	s.releases = l.current
}

// apply makes one step: + or -, and the version, or nothing for the server.
func (s *quarantineState) apply(t fataler, step string) {
	t.Helper()
	l, version := s.lineage(), Version{step[1:]}
	if step[0] == '+' {
		q, prior, err := l.Quarantine(Quarantined{
			Version: version, Reason: Reason("reason of " + version.value),
		}, s.now)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		s.entries, s.prior = append(s.entries, q), append(s.prior, prior...)
	} else {
		released, err := l.Release(version, s.prior, s.now)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		s.entries = slices.DeleteFunc(s.entries, func(q Quarantined) bool { return q.Version == version })
		s.prior = slices.DeleteFunc(s.prior, func(p PriorStatus) bool { return slices.Contains(released, p.Version) })
	}
	s.releases = l.current
}

// requireRestored checks that a server is as it was, except for the times of updates.
func requireRestored(t fataler, before []Release, s *quarantineState) {
	t.Helper()
	if len(s.prior) > 0 {
		t.Fatalf("prior statuses remain: %+v", s.prior)
	}
	for i, r := range s.releases {
		r.UpdatedAt = before[i].UpdatedAt
		if r != before[i] {
			t.Fatalf("%+v was restored as %+v", before[i], r)
		}
	}
}

// TestReleaseRestores: whatever is put in quarantine and released, in any order, and whatever
// others do meanwhile, exactly one version is latest after each step, what is covered is deleted,
// and in the end everything that was not changed otherwise is as before.
func TestReleaseRestores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := NewLineage(weather, nil)
		for _, v := range rapid.SliceOfNDistinct(drawVersions(), 1, 6, rapid.ID).Draw(t, "versions") {
			_, _ = l.Publish(Version{v}, epoch)
			_, _ = l.SetStatus(Version{v}, StatusUpdate{drawStatuses().Draw(t, "status"), "a message"},
				epoch.Add(time.Minute))
		}
		s, before := newQuarantineState(l.current), l.current
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			step, target := "+", rapid.SampledFrom(append(versionsOf(before), "")).Draw(t, "target")
			if s.has(target) {
				step = "-"
			}
			stored := s.releases
			s.apply(t, step+target)
			requireHidden(t, stored, s)
		}
		for len(s.entries) > 0 {
			s.apply(t, "-"+rapid.SampledFrom(s.entries).Draw(t, "entry").Version.value)
		}
		requireRestored(t, before, s)
	})
}

func versionsOf(releases []Release) (versions []string) {
	for _, r := range releases {
		versions = append(versions, r.Version.value)
	}
	return versions
}

// requireHidden checks a server after a step.
func requireHidden(t *rapid.T, stored []Release, s *quarantineState) {
	requireSound(t, stored, &Lineage{name: weather, current: s.releases})
	for _, r := range s.releases {
		q, covered := FindQuarantine(s.entries, r.Version)
		held := slices.ContainsFunc(s.prior, func(p PriorStatus) bool { return p.Version == r.Version })
		if covered != held || covered && (r.Status != StatusDeleted || r.StatusMessage != string(q.Reason)) {
			t.Fatalf("%+v is covered: %v by %+v, with a prior status: %v", r, covered, q, held)
		}
	}
}
