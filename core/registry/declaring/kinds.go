package declaring

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	States       registrystore.AppliedStates
	People       authority.EmailAddresses
	Clock        clock.Clock
	Entropy      secrets.Entropy

	Grants       registrystore.Grants
	GrantChanges *delegating.GrantOperator
	Policies     *delegating.Policies
	Webhooks     *notifying.Operator
	Sealer       secrets.Sealer
	Reviews      *reviewing.Service
	Managed      management.Kinds
}

// Service applies and exports the state in a file. It is safe for concurrent use, also by other
// processes. Each method returns fault.Unavailable when the database fails.
type Service struct{ ports Ports }

// New returns a service.
func New(p Ports) *Service { return &Service{p} }

// The kinds that others refer to.
const (
	kindGrant          = "grant"
	kindServiceAccount = "serviceAccount"
)

// run is one use of the kinds in a transaction, with what references need.
type run struct {
	*Service

	request *Request
	emails  map[registry.Holder]string // of people, by their ids
	people  map[string]registry.Holder // by their e-mail addresses
	// accounts are the names of service accounts that exist after the run.
	accounts map[string]bool
}

func (s *Service) newRun(ctx context.Context, q *Request) (*run, error) {
	emails, err := s.ports.People(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{s, q, emails, make(map[string]registry.Holder, len(emails)), map[string]bool{}}
	for id, email := range emails {
		r.people[email] = id
	}
	return r, nil
}

// person returns the person with an e-mail address.
func (r *run) person(field, address string) (registry.Holder, error) {
	id, ok := r.people[email.Canonical(address)]
	if !ok {
		return "", fault.In(field, fault.Violated("%s: there is no person with the e-mail address %.100q", field, address))
	}
	return id, nil
}

// NewApplyID returns the ID of a request.
func (s *Service) NewApplyID() string { return secrets.NewUUID[string](s.ports.Entropy) }

// CheckOwner returns fault.Invalid for a text that is no name of an owner, which has the form of
// that of a view. The empty text is DefaultOwner.
func CheckOwner(owner string) error {
	if _, err := view.ParseTokenName(owner); err != nil && owner != "" {
		return Wrong(Position{}, "owner", "must have 1 to 40 lower-case letters, digits and hyphens")
	}
	return nil
}

// kinds is the table of what a document declares, in the order in which changes are reported. What
// others refer to is before them.
func (r *run) kinds() []kind {
	all := []kind{
		r.serviceAccounts(), r.grants(), r.policies(), r.managed("views"), r.managed("mirrors"), r.webhooks(), r.reviewRules(),
		r.managed("providers"), r.managed("accessRules"),
	}
	for _, list := range slices.Sorted(maps.Keys(r.ports.Managed)) {
		if !slices.ContainsFunc(all, func(k kind) bool { return k.member == list }) {
			all = append(all, r.managed(list))
		}
	}
	return all
}

// listed returns the function that returns the objects of all stored values.
func listed[T any](
	list func(context.Context) ([]T, error), toObject func(*T) object,
) func(context.Context) ([]object, error) {
	return func(ctx context.Context) ([]object, error) {
		all, err := list(ctx)
		objects := make([]object, 0, len(all))
		for i := range all {
			objects = append(objects, toObject(&all[i]))
		}
		return objects, err
	}
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s) // checkTime has checked it
	return t
}
