package declaring

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/event"
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
		return each.MapRef(all, toObject), err
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

// managed returns a kind of which only its hexagon knows what the fields mean.
func (r *run) managed(list string) kind {
	objects := r.ports.Managed[list]
	k := objects.Kind()
	toObject := func(o *management.Object) object {
		key := o.Key
		o.Fields = k.Present(o.Fields)
		return object{
			Object: o.Object, owner: o.Owner,
			remove: func(ctx context.Context) error { return objects.Remove(ctx, key, management.Change{}) },
		}
	}
	return kind{
		name: k.Name, member: k.List, fields: k.Declared(),
		decode: func(_ context.Context, v audit.Details) (object, error) {
			for i := range k.Fields {
				if name := k.Fields[i].Name; k.Fields[i].Secret && (v[name] == nil || v[name] == audit.Text("")) {
					delete(v, name) // which keeps the stored one
				}
			}
			parsed, err := objects.Parse(v)
			o := toObject(&parsed)
			o.save = func(ctx context.Context, owner string, _ *object) error {
				_, _, err := objects.Put(ctx, management.Change{Fields: v, Owner: owner})
				return err
			}
			return o, err
		},
		stored: listed(func(ctx context.Context) ([]management.Object, error) {
			return objects.List(ctx, "", math.MaxInt32)
		}, toObject),
	}
}

// serviceAccounts returns the kind of the callers that are no people. Grants refer to those that exist after
// the run.
func (r *run) serviceAccounts() kind {
	k := r.managed("serviceAccounts")
	decode, stored := k.decode, k.stored
	k.decode = func(ctx context.Context, v audit.Details) (object, error) {
		r.accounts[v.Text("name")] = true
		return decode(ctx, v)
	}
	k.stored = func(ctx context.Context) ([]object, error) {
		all, err := stored(ctx)
		for i := range all {
			if !r.request.Prune || all[i].owner != r.request.Owner {
				r.accounts[all[i].Key] = true
			}
		}
		return all, err
	}
	return k
}

func (r *run) webhooks() kind {
	return kind{
		name: "webhook", member: "webhooks", alike: true,
		fields: []kinds.Field{
			{Name: "url", Required: true, Check: kinds.Checked(event.ParseURL)},
			{Name: "events", Required: true, Shape: kinds.Texts, Check: kinds.Checked(event.ParseType)},
			{Name: "pattern", Check: kinds.Checked(registry.ParsePattern)}, {Name: audit.FieldSecret, Check: kinds.Checked(event.ParseSecret)},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			draft := event.Draft{
				URL: v.Text("url"), Events: v.Texts("events"), Pattern: v.Text("pattern"),
				Secret: event.Secret(v.Text(audit.FieldSecret)),
			}
			w, err := event.New(draft)
			o := r.webhook(&w, draft.Secret)
			o.save = func(ctx context.Context, owner string, before *object) (err error) {
				if draft.ManagedBy = owner; before == nil {
					_, _, err = r.ports.Webhooks.Add(ctx, draft)
					return err
				}
				_, err = r.ports.Webhooks.Change(ctx, event.WebhookID(before.id),
					func(event.Draft) event.Draft { return draft }, nil)
				return err
			}
			return o, err
		},
		stored: listed(r.ports.Webhooks.List, func(w *notifying.Listed) object {
			secret, err := r.ports.Sealer.Open(w.Secret, notifying.SealedSecret(w.ID))
			if err != nil { // of another key: every secret is another one
				secret = w.Secret
			}
			return r.webhook(&w.Webhook, event.Secret(secret))
		}),
	}
}

func (r *run) webhook(w *event.Webhook, secret event.Secret) object {
	id := w.ID
	return object{
		Object: audit.Object{Kind: "webhook", Key: w.URL.String(), Fields: kinds.Present(audit.Details{
			"url": audit.Text(w.URL.String()), "events": audit.Texts(w.Events), "pattern": audit.Text(w.Pattern.String()),
			audit.FieldSecret: audit.Text(audit.HashSecret(secret)),
		})},
		id: string(w.ID), owner: w.ManagedBy,
		remove: func(ctx context.Context) error { return r.ports.Webhooks.Remove(ctx, id, nil) },
	}
}
