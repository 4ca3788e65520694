// Package mirroring holds the use cases of mirrors: operators add and remove them, and instances
// take over what other registries list (contract C-60 to C-70). Package mirror has the rules,
// package registry those of the versions.
package mirroring

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config are the settings of an Operator.
type Config struct {
	// Review makes the documents of mirrors wait for review, unless the mirror is trusted (contract
	// C-10).
	Review bool
	// Reserved are the names that no mirror may take (contract P-21).
	Reserved []registry.Pattern
}

// Ports are the dependencies of an Operator. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Mirrors      registrystore.Mirrors
	Mirrored     registrystore.MirroredVersions
	Writer       registrystore.ServerWriter
	Reader       registrystore.ServerReader
	Quarantine   registrystore.Quarantine
	Grants       registrystore.Grants
	Reviews      registrystore.Reviews
	Approver     reviewing.Approver
	Events       *notifying.Recorder
	Recorder     authority.Recorder
	Source       recordsource.Registries
	Clock        clock.Clock
	Waiter       clock.Waiter
	Entropy      secrets.Entropy
}

// Operator adds, lists, reads and removes mirrors. It is safe for concurrent use, also by other
// processes and a running service. Each method returns fault.Unavailable when the database fails.
type Operator struct {
	config Config
	ports  Ports
}

// NewOperator returns an operator.
func NewOperator(c Config, p Ports) *Operator { return &Operator{c, p} }

// Add adds a mirror, which an instance of the service reads soon after. It returns fault.Invalid,
// with the name of the field, for a wrong draft, and fault.Conflict when there is a mirror with its
// name or there are too many.
func (o *Operator) Add(ctx context.Context, d mirror.Draft) (mirror.Mirror, error) {
	m, err := mirror.New(d, o.ports.Clock.Now())
	if err != nil {
		return mirror.Mirror{}, err
	}
	return m, o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		existing, err := o.ports.Mirrors.List(ctx)
		if err != nil {
			return err
		}
		if len(existing) >= mirror.MaxMirrors {
			return fault.Newf(fault.Conflict, "there are %d mirrors already: remove some", len(existing))
		}
		switch err := o.ports.Mirrors.Add(ctx, m); {
		case fault.Is(err, fault.Conflict):
			return fault.Newf(fault.Conflict, "there is a mirror %s already: remove it first", m.Name)
		case err != nil:
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, newMirrorChange("mirror_add", &m))
	})
}

// newMirrorChange returns the audit event of a mirror, without the secrets of its URL.
func newMirrorChange(action audit.Action, m *mirror.Mirror) audit.Change {
	return registry.NewOperatorChange(action, audit.Details{
		"mirror": audit.Text(m.Name), "url": audit.Text(m.URL.Public()),
	})
}

// List returns all mirrors, ordered by name.
func (o *Operator) List(ctx context.Context) ([]mirror.Mirror, error) {
	return o.ports.Mirrors.List(ctx)
}

// find returns a mirror, or fault.NotFound.
func (o *Operator) find(ctx context.Context, name mirror.Name) (mirror.Mirror, error) {
	all, err := o.ports.Mirrors.List(ctx)
	if err != nil {
		return mirror.Mirror{}, err
	}
	i := slices.IndexFunc(all, func(m mirror.Mirror) bool { return m.Name == name })
	if i < 0 {
		return mirror.Mirror{}, errNoMirror(name)
	}
	return all[i], nil
}

func errNoMirror(name mirror.Name) error {
	return fault.Newf(fault.NotFound, "there is no mirror %.60q", string(name))
}

func (o *Operator) now() time.Time { return o.ports.Clock.Now().UTC().Truncate(time.Microsecond) }
