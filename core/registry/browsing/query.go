package browsing

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
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

// traits are the filters that the store does not know: the records that it returns are filtered
// (contract R-62). Zero fields do not restrict.
type traits struct {
	status      registry.Status
	packageType string
	remote      string // "true" or "false"
}

// maxPackageType is the greatest length of the filter, in bytes.
const maxPackageType = 64

// parseTraits validates the filters by status and by what documents offer.
func parseTraits(q Query) (traits, error) {
	t := traits{packageType: q.PackageType}
	if q.Status != "" {
		status, err := registry.ParseStatus(q.Status)
		if err != nil {
			return traits{}, invalidParameter("status", "must be active, deprecated or deleted")
		}
		t.status = status
	}
	if !registry.IsText(q.PackageType) || len(q.PackageType) > maxPackageType {
		return traits{}, invalidParameter("package_type", "must be the registryType of a package, for example npm")
	}
	remote, err := parseFlag("remote", q.Remote)
	if q.Remote != "" {
		t.remote = strconv.FormatBool(remote)
	}
	return t, err
}

// match reports whether a record has the traits.
func (t traits) match(r *registry.Record) bool {
	if t.status != "" && r.Status != t.status {
		return false
	}
	if t.packageType == "" && t.remote == "" {
		return true
	}
	offer := registry.OfferOf(r.Document)
	return (t.packageType == "" || slices.Contains(offer.PackageTypes, t.packageType)) &&
		(t.remote == "" || offer.Remote == (t.remote == "true"))
}

// maxTested is the number of records among which a page looks for those with the traits.
const maxTested = 1000

// list returns a page of the records that the query selects and that have the traits.
func (t traits) list(
	ctx context.Context, servers registrystore.ServerReader, q registrystore.Query,
) (registrystore.Page, error) {
	if t == (traits{}) {
		return servers.List(ctx, q)
	}
	return listMatching(ctx, servers, q, t.match)
}

// listMatching returns a page of the records that the query selects and that match. It ends after
// maxTested records at the latest, possibly without any.
func listMatching(
	ctx context.Context, servers registrystore.ServerReader, q registrystore.Query, match func(*registry.Record) bool,
) (registrystore.Page, error) {
	var matching registrystore.Page
	size, limit := 0, q.Limit
	for tested := 0; ; {
		q.Limit = min(page.MaxLimit, maxTested-tested)
		found, err := servers.List(ctx, q)
		if err != nil {
			return registrystore.Page{}, err
		}
		for i := range found.Records {
			r := &found.Records[i]
			if !match(r) {
				continue
			}
			matching.Records, size = append(matching.Records, *r), size+len(r.Document)
			if len(matching.Records) == limit || size >= q.Bytes {
				matching.More = found.More || i+1 < len(found.Records)
				return matching, nil
			}
		}
		if !found.More {
			return matching, nil
		}
		q.AfterName, q.AfterVersion = found.End()
		// A page without records was ended by the store, which has read many.
		if tested += max(len(found.Records), 1); tested >= maxTested || len(found.Records) == 0 {
			matching.More, matching.EndName, matching.EndVersion = true, q.AfterName, q.AfterVersion
			return matching, nil
		}
	}
}
