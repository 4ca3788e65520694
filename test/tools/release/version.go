package main

import (
	"regexp"
	"strings"
)

// described is a version as git describe prints it: the last tag, how many commits ago that was,
// the commit, and whether files have changed since.
var described = regexp.MustCompile(`^v([0-9][0-9.]*)(-(?:alpha|beta|rc)[a-z0-9.]*)?(?:-([0-9]+)-g([0-9a-f]+))?(-dirty)?$`)

// plainVersion returns the version without v, in characters that dpkg and rpm accept, and so that
// they sort it: 1.0.0~rc.1 before 1.0.0, and 1.0.0+5.gabc, five commits later, after it.
func (s source) plainVersion() string {
	m := described.FindStringSubmatch(s.version)
	if m == nil { // a commit without a tag before it, or no git
		return "0.0.0+" + strings.ReplaceAll(s.version, "-", ".")
	}
	version := m[1]
	if m[2] != "" {
		version += "~" + m[2][1:]
	}
	var since []string
	if m[3] != "" {
		since = append(since, m[3], "g"+m[4])
	}
	if m[5] != "" {
		since = append(since, "dirty")
	}
	if len(since) > 0 {
		version += "+" + strings.Join(since, ".")
	}
	return version
}
