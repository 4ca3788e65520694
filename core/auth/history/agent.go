package history

import (
	"strconv"
	"strings"

	"github.com/mileusna/useragent"
)

// agent is the browser and the system that a user agent names. Parts that it does not name are
// "unknown".
type agent struct {
	family  string // of the browser
	version uint32 // of the browser: 100 times the major version plus the minor one; 0 if it is not known
	system  string
}

func parseAgent(userAgent string) agent {
	parsed := useragent.Parse(userAgent)
	return agent{family: nameOr(parsed.Name), system: nameOr(parsed.OS), version: parseVersion(parsed.Version)}
}

// nameOr returns a name that is part of a value, or "unknown" for an empty one.
func nameOr(name string) string {
	if name == "" {
		return "unknown"
	}
	return shorten(name)
}

// maxVersion is the greatest part of a version. It keeps what a client sends within a uint32.
const maxVersion = 1 << 20

// parseVersion returns the first two parts of a version as a number that can be compared, or 0 if
// the first is not a number. A minor version above 99 counts as 99.
func parseVersion(version string) uint32 {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.ParseUint(major, 10, 32)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(minor, 10, 32)
	if err != nil {
		n = 0
	}
	return uint32(min(m, maxVersion)*100 + min(n, 99))
}
