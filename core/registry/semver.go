package registry

import (
	"strings"

	"golang.org/x/mod/semver"
)

// parseSemver returns a semantic version (SemVer 2.0.0), with or without a lower-case "v" before it
// (contract R-21), in the form that golang.org/x/mod/semver compares. It returns false for any
// other text, also for the short forms v1 and v1.2 that Go allows.
func parseSemver(s string) (string, bool) {
	v := "v" + strings.TrimPrefix(s, "v")
	core, _, _ := strings.Cut(v, "+")
	core, _, _ = strings.Cut(core, "-")
	return v, strings.Count(core, ".") == 2 && semver.IsValid(v)
}
