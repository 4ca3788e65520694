package registry

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSemanticVersions(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("9", 100)
	for _, s := range []string{
		"0.0.0", "1.2.3", "v1.2.3", "1.0.0-alpha.1", "1.0.0--", "1.0.0-0a", "1.0.0+001", "1.0.0-x.7.z.92+build.-",
		huge + ".0.0",
	} {
		if _, ok := parseSemver(s); !ok {
			t.Errorf("%q is not semantic, want it to be", s)
		}
	}
	for _, s := range []string{
		"", "1", "1.2", "1.2.3.4", "V1.2.3", "vv1.2.3", "01.2.3", "1.02.3", "1.2.03", "1.2.3-01", "1.2.3-a..b",
		"1.2.3-", "1.2.3+", "1.2.3+a..b",
		"1.2.3-é", "1.2.3+a_b", " 1.2.3", "1.2.x", "-1.2.3", "1..3", "１.2.3",
	} {
		if _, ok := parseSemver(s); ok {
			t.Errorf("%q is semantic, want it not to be", s)
		}
	}
}

// TestPrecedence goes up a ladder: each version ranks above all before it, whatever the order of
// publication.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	ladder := []string{
		"zulu", "0.0.0-0", "0.0.1", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0--", "1.0.0-alpha", "1.0.0-alpha.1",
		"1.0.0-alpha.beta", "1.0.0-beta",
		"v1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.2", "1.0.10", "1.2.0", "1.10.0",
		"v2.0.0", "10.0.0",
		"18446744073709551616.0.0", "18446744073709551617.0.0",
	}
	for i, low := range ladder {
		for _, high := range ladder[i+1:] {
			for _, age := range []time.Duration{-time.Hour, time.Hour} {
				a := Release{Version: Version{high}, PublishedAt: epoch}
				b := Release{Version: Version{low}, PublishedAt: epoch.Add(age)}
				if !outranks(a, b) || outranks(b, a) {
					t.Errorf("%s does not outrank %s, published %s later", high, low, age)
				}
			}
		}
	}
}

func TestOutranksByPublicationAndStatus(t *testing.T) {
	t.Parallel()
	cases := map[string][2]Release{ // the first outranks the second
		"equal precedence": {
			{Version: Version{"1.0.0+a"}, PublishedAt: epoch.Add(1)}, {
				Version: Version{"v1.0.0+b"}, PublishedAt: epoch,
			},
		},
		"two others": {
			{Version: Version{"alpha"}, PublishedAt: epoch.Add(1)}, {Version: Version{"omega"}, PublishedAt: epoch},
		},
		"deleted semantic": {
			{Version: Version{"draft"}, PublishedAt: epoch}, {
				Version: Version{"9.0.0"}, Status: StatusDeleted, PublishedAt: epoch.Add(1),
			},
		},
		"deprecated is living": {
			{Version: Version{"2.0.0"}, Status: StatusDeprecated, PublishedAt: epoch}, {
				Version: Version{"1.0.0"}, PublishedAt: epoch.Add(1),
			},
		},
		"two deleted, semantic": {
			{Version: Version{"2.0.0"}, Status: StatusDeleted, PublishedAt: epoch}, {
				Version: Version{"draft"}, Status: StatusDeleted, PublishedAt: epoch.Add(1),
			},
		},
	}
	for name, c := range cases {
		if !outranks(c[0], c[1]) || outranks(c[1], c[0]) {
			t.Errorf("%s: the order is not as it should be", name)
		}
	}
}

// TestOrderIsTotal: of two releases exactly one outranks the other, and ranks are transitive.
func TestOrderIsTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r [3]Release
		for i := range r {
			r[i] = Release{
				Version:     Version{drawVersions().Draw(t, "version")},
				Status:      drawStatuses().Draw(t, "status"),
				PublishedAt: epoch.Add(time.Duration(i) * time.Microsecond),
			}
		}
		a, b, c := r[rapid.IntRange(0, 2).Draw(t, "a")], r[rapid.IntRange(0, 2).Draw(t, "b")],
			r[rapid.IntRange(0, 2).Draw(t, "c")]
		if a.PublishedAt.Equal(b.PublishedAt) == (outranks(a, b) != outranks(b, a)) {
			t.Fatalf("%+v and %+v: exactly one must outrank the other, unless they are one", a, b)
		}
		if outranks(a, b) && outranks(b, c) && !outranks(a, c) {
			t.Fatalf("%+v, %+v, %+v: ranks are not transitive", a, b, c)
		}
	})
}

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func drawVersions() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`v?(0|[1-3])\.(0|[1-3])\.(0|[1-3])(-(alpha|[0-3]|beta\.[0-2]))?(\+b[0-2])?`),
		rapid.SampledFrom([]string{"draft", "2026-11", "1.0", "01.0.0", "final"}),
	)
}

func drawStatuses() *rapid.Generator[Status] {
	return rapid.SampledFrom([]Status{StatusActive, StatusDeprecated, StatusDeleted})
}

func outranks(a, b Release) bool { return rankOf(a).ranksAbove(rankOf(b)) }
