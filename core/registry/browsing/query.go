package browsing

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Query has the parameters of a request of the listing, as they were sent. An empty parameter
// counts as absent (contract R-8).
type Query struct {
	Cursor         string
	Limit          string
	Search         string
	UpdatedSince   string
	Version        string
	IncludeDeleted string
	// Status, PackageType and Remote select by the status and by what the documents offer
	// (contract R-62).
	Status      string
	PackageType string
	Remote      string
}

// filters are the validated parameters that select versions. A cursor contains those of its first
// page.
type filters struct {
	search  string
	since   time.Time // zero = all; whole microseconds, like the times in the store
	version string
	deleted bool
	traits  traits
}

// parseFilters validates the filters of a query. It ignores the cursor.
func parseFilters(q Query) (filters, error) {
	f := filters{search: q.Search, version: q.Version}
	var err error
	if f.traits, err = parseTraits(q); err != nil {
		return filters{}, err
	}
	switch {
	case !registry.IsText(q.Search):
		return filters{}, invalidParameter("search", "must be text without NUL")
	case !registry.IsText(q.Version):
		return filters{}, invalidParameter("version", "must be text without NUL")
	}
	if f.deleted, err = parseFlag("include_deleted", q.IncludeDeleted); err != nil {
		return filters{}, err
	}
	if f.traits.status == registry.StatusDeleted {
		if q.IncludeDeleted != "" && !f.deleted {
			return filters{}, invalidParameter("include_deleted", "must not be false together with status=deleted")
		}
		f.deleted = true
	}
	if q.UpdatedSince == "" {
		return f, nil
	}
	if f.since, err = parseSince(q.UpdatedSince); err != nil {
		return filters{}, err
	}
	if q.IncludeDeleted != "" && !f.deleted {
		return filters{}, invalidParameter("include_deleted",
			"must not be false together with updated_since, which always includes deleted versions")
	}
	f.deleted = true
	return f, nil
}

// storeQuery returns the query for the store, and false when it cannot select anything: no name
// contains the search text, or the version is not valid.
func (f filters) storeQuery() (registrystore.Query, bool) {
	q := registrystore.Query{Search: f.search, UpdatedSince: f.since, Deleted: f.deleted}
	if !registry.CanBeInName(f.search) {
		return q, false
	}
	switch f.version {
	case "":
		return q, true
	case registry.LatestAlias:
		q.LatestOnly = true
		return q, true
	}
	var err error
	q.Version, err = registry.ParseVersion(f.version)
	return q, err == nil
}

// checkMatch returns fault.Invalid when the query has a filter that differs from f, the filters of
// its cursor. A filter that the query omits matches (contract R-13).
func (f filters) checkMatch(q Query) error {
	sent, err := parseFilters(q)
	if err != nil {
		return err
	}
	const problem = "must be the one that the cursor was made with; leave it out, or start without a cursor"
	switch {
	case q.Search != "" && sent.search != f.search:
		return invalidParameter("search", problem)
	case q.Version != "" && sent.version != f.version:
		return invalidParameter("version", problem)
	case q.UpdatedSince != "" && !sent.since.Equal(f.since):
		return invalidParameter("updated_since", problem)
	case q.IncludeDeleted != "" && sent.deleted != f.deleted:
		return invalidParameter("include_deleted", problem)
	case q.Status != "" && sent.traits.status != f.traits.status:
		return invalidParameter("status", problem)
	case q.PackageType != "" && sent.traits.packageType != f.traits.packageType:
		return invalidParameter("package_type", problem)
	case q.Remote != "" && sent.traits.remote != f.traits.remote:
		return invalidParameter("remote", problem)
	}
	return nil
}

func parseFlag(name, s string) (bool, error) {
	if s == "" {
		return false, nil
	}
	flag, err := strconv.ParseBool(s)
	if err != nil {
		return false, invalidParameter(name, "must be true or false")
	}
	return flag, nil
}

// sinceForm is the form of RFC 3339, section 5.6, whose letters may be lower case. time.Parse also
// accepts a comma before the fraction, a single digit and an offset out of range.
var sinceForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func parseSince(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil || !sinceForm.MatchString(s) {
		return time.Time{}, invalidParameter("updated_since",
			"must be an RFC 3339 time, for example 2026-01-31T12:00:00Z")
	}
	return clampTime(t.UTC().Truncate(time.Microsecond), beforeAll(), afterAll()), nil
}

// beforeAll and afterAll are the bounds of all update times. Some stores do not support times far
// outside, for example the year 0.
func beforeAll() time.Time { return time.Unix(0, 0).UTC().Add(-time.Microsecond) }
func afterAll() time.Time  { return time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC) }

// clampTime returns t, or the nearer bound if t is outside of the bounds.
func clampTime(t, least, most time.Time) time.Time {
	switch {
	case t.Before(least):
		return least
	case t.After(most):
		return most
	}
	return t
}

func invalidParameter(parameter, problem string) error {
	return fault.New(fault.Invalid, parameter+" "+problem)
}
