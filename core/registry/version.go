package registry

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/semver"

	"github.com/tollgate-dev/tollgate/core/fault"
)

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

// parseSemver returns a semantic version (SemVer 2.0.0), with or without a lower-case "v" before it
// (contract R-21), in the form that golang.org/x/mod/semver compares. It returns false for any
// other text, also for the short forms v1 and v1.2 that Go allows.
func parseSemver(s string) (string, bool) {
	v := "v" + strings.TrimPrefix(s, "v")
	core, _, _ := strings.Cut(v, "+")
	core, _, _ = strings.Cut(core, "-")
	return v, strings.Count(core, ".") == 2 && semver.IsValid(v)
}

// The forms of version ranges (contract R-49). A comparator or a hyphen makes a range only before
// text that begins like a version, so that "~draft" is still a version.
const (
	comparator  = `(?:\^|~|>=|<=|>|<|=)\s*` + versionLike
	versionLike = `[vV]?(?:[0-9]\S*|[xX*](?:\.\S*)?)`
	partOrWild  = `(?:[0-9]+|[xX*])`
)

var (
	comparatorList = regexp.MustCompile(`^` + comparator + `(?:\s+` + comparator + `)*$`)
	hyphenRange    = regexp.MustCompile(`^` + versionLike + `\s+-\s+` + versionLike + `$`)
	dottedParts    = regexp.MustCompile(`^[vV]?` + partOrWild + `(?:\.` + partOrWild + `){1,2}$`)
)

// isRange reports whether s is a range of versions.
func isRange(s string) bool {
	s = strings.TrimSpace(s)
	switch {
	case !strings.ContainsAny(s, "^~<>=|*xX \t\n\v\f\r"): // nearly all versions; stores call it for every row
		return false
	case s == "*", s == "x", s == "X", strings.Contains(s, "||"):
		return true
	case dottedParts.MatchString(s):
		return strings.ContainsAny(s, "xX*")
	}
	return comparatorList.MatchString(s) || hyphenRange.MatchString(s)
}

// MaxStatusMessage is the greatest length of a status message in characters (contract R-30).
const MaxStatusMessage = 500

// Status is the lifecycle status of a server version (contract R-28).
type Status string

// The statuses of a version. Readers get deleted versions only on request.
const (
	StatusActive     Status = "active"
	StatusDeprecated Status = "deprecated"
	StatusDeleted    Status = "deleted"
)

// ParseStatus returns the status with the given name. It returns fault.Invalid for any other text.
func ParseStatus(s string) (Status, error) {
	return fault.OneOf("status", s, StatusActive, StatusDeprecated, StatusDeleted)
}

// StatusUpdate is the body of a status change, valid by contract R-30. ParseStatusUpdate and
// NewStatusUpdate make one.
type StatusUpdate struct {
	status  Status
	message string
}

// NewStatusUpdate returns a change to a status with an optional message. It returns fault.Invalid
// for a message that is too long, contains a NUL, or comes with the status active.
func NewStatusUpdate(status Status, message string) (StatusUpdate, error) {
	if err := checkStatusText("statusMessage", message); err != nil {
		return StatusUpdate{}, err
	}
	if message != "" && status == StatusActive {
		return StatusUpdate{}, fault.New(fault.Invalid,
			"statusMessage is allowed with deprecated and deleted only, not with active")
	}
	return StatusUpdate{status, message}, nil
}

// checkStatusText returns fault.Invalid, with the name of the field, for a text that no status
// message can be (contract R-30).
func checkStatusText(field, text string) error {
	switch n := utf8.RuneCountInString(text); {
	case n > MaxStatusMessage:
		return fault.Newf(fault.Invalid, "%s must have at most %d characters, and has %d", field, MaxStatusMessage, n)
	case strings.ContainsRune(text, 0):
		return fault.Newf(fault.Invalid, "%s must not contain a NUL", field)
	}
	return nil
}

// Status returns the requested status.
func (u StatusUpdate) Status() Status { return u.status }

// Message returns the requested message; empty removes the current one.
func (u StatusUpdate) Message() string { return u.message }

// StatusUpdateBody is the JSON body of a status change before its rules are checked: permission is
// checked after reading and before the rules (contract R-6).
type StatusUpdateBody struct{ root node }

// ParseStatusUpdateBody reads the JSON of a status change. It returns fault.Invalid unless the body
// is a JSON object without a NUL.
func ParseStatusUpdateBody(body []byte) (StatusUpdateBody, error) {
	_, root, err := parseObject(body)
	return StatusUpdateBody{root}, err
}

// Update returns the update after checking the rules. It returns fault.Invalid with everything that
// is wrong (contract R-30).
func (b StatusUpdateBody) Update() (StatusUpdate, error) {
	var r report
	objectCheck(statusUpdateShape)(&r, location{}, &b.root)
	findDuplicates(&r, location{}, &b.root)
	if refusal := r.refusalText("status update"); refusal != "" {
		return StatusUpdate{}, fault.New(fault.Invalid, refusal)
	}
	name, _ := b.root.stringProperty("status")
	message, _ := b.root.stringProperty("statusMessage")
	status, err := ParseStatus(name)
	if err != nil {
		return StatusUpdate{}, err
	}
	return NewStatusUpdate(status, message)
}

var statusUpdateShape = shape{"StatusUpdateRequest", []property{
	{"status", true, stringCheck()},
	{"statusMessage", false, stringCheck()},
}}
