package registry

// Outranks reports whether a, rather than b, is the latest of the two versions of one server
// (contract R-22): one that is not deleted beats one that is, a semantic one beats another, two
// semantic ones compare by precedence, and then, as do two others, by publication. It is a strict
// total order, since no two versions of a server are published at the same time.
func Outranks(a, b Release) bool { return rank(a).over(rank(b)) }

// ranked is a release with its version split for comparison.
type ranked struct {
	release  Release
	semver   semver
	semantic bool
}

func rank(r Release) ranked {
	v, ok := parseSemver(r.Version.value)
	return ranked{r, v, ok}
}

func (a ranked) over(b ranked) bool {
	if x, y := a.release.Status == StatusDeleted, b.release.Status == StatusDeleted; x != y {
		return y
	}
	if a.semantic != b.semantic {
		return a.semantic
	}
	if a.semantic {
		if c := a.semver.compare(b.semver); c != 0 {
			return c > 0
		}
	}
	return a.release.PublishedAt.After(b.release.PublishedAt)
}
