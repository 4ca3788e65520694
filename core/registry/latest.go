package registry

import "golang.org/x/mod/semver"

// HighestRanked returns the release that outranks the others, and false for an empty list.
func HighestRanked(releases []Release) (Release, bool) {
	if len(releases) == 0 {
		return Release{}, false
	}
	return releases[indexOfHighest(releases)], true
}

// indexOfHighest returns the index of the release that outranks the others. There must be at least
// one.
func indexOfHighest(releases []Release) int {
	best, bestRank := 0, rankOf(releases[0])
	for i := 1; i < len(releases); i++ {
		if r := rankOf(releases[i]); r.ranksAbove(bestRank) {
			best, bestRank = i, r
		}
	}
	return best
}

// ranked is a release with its version in the form that is compared.
type ranked struct {
	release  Release
	version  string
	semantic bool
}

func rankOf(r Release) ranked {
	v, ok := parseSemver(r.Version.value)
	return ranked{r, v, ok}
}

// ranksAbove reports whether a, rather than b, is the latest of the two versions of one server
// (contract R-22). A version that is not deleted ranks above a deleted one, and a semantic version
// above another one. Two semantic versions compare by precedence; if that is equal, and for two
// others, the later publication ranks higher. It is a strict total order, because no two versions
// of a server are published at the same time.
func (a ranked) ranksAbove(b ranked) bool {
	if x, y := a.release.Status == StatusDeleted, b.release.Status == StatusDeleted; x != y {
		return y
	}
	if a.semantic != b.semantic {
		return a.semantic
	}
	if a.semantic {
		if c := semver.Compare(a.version, b.version); c != 0 {
			return c > 0
		}
	}
	return a.release.PublishedAt.After(b.release.PublishedAt)
}
