package prometheus

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

// Outcomes of package checks, except failures.
const (
	packageOwned       = "owned"
	packageRefused     = "refused"     // the package does not exist, or does not name the server
	packageUnsupported = "unsupported" // no plugin checks its type
)

// otherType replaces registry types that no plugin checks, because a document may contain any text.
const otherType = "other"

// Ownership counts the results of ownership checks, and passes them on.
type Ownership struct {
	ownership.Checker
	types  []string
	checks *prometheus.CounterVec
}

// NewOwnership returns a checker whose results are counted by registry type: types, and those that
// plugins check.
func NewOwnership(c ownership.Checker, types []string, r prometheus.Registerer) *Ownership {
	o := &Ownership{c, types, newCounters(r, "tollgate_package_checks_total",
		"Checks whether a package names the server that lists it, by outcome.", "registry_type", "outcome")}
	newTable(o.checks, append(slices.Clone(types), otherType),
		[]string{packageOwned, packageRefused, packageUnsupported, unavailable, failed})
	return o
}

// Check counts a check.
func (o *Ownership) Check(ctx context.Context, c ownership.Claim) error {
	err := o.Checker.Check(ctx, c)
	o.checks.WithLabelValues(o.typeLabel(c.RegistryType), packageOutcome(err)).Inc()
	return err
}

// typeLabel returns the label of a registry type: the type itself if a plugin checks it or would
// check it, which are few.
func (o *Ownership) typeLabel(registryType string) string {
	if slices.Contains(o.types, registryType) || slices.Contains(o.Types(), registryType) {
		return registryType
	}
	return otherType
}

func packageOutcome(err error) string {
	switch {
	case err == nil:
		return packageOwned
	case fault.Is(err, fault.Invalid):
		return packageRefused
	case fault.Is(err, fault.Unsupported):
		return packageUnsupported
	}
	return failureLabel(err)
}
