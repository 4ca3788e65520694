package browsing

import (
	"context"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

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
