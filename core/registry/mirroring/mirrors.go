// Package mirroring holds the use cases of mirrors: operators add and remove them, and instances
// take over what other registries list (contract C-60 to C-70). Package mirror has the rules,
// package registry those of the versions.
package mirroring

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
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
	Events       *announce.Recorder
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

// Put adds a mirror, or replaces the one with its name, and reports whether it added one. A read of
// the other registry ends then, and the next one, soon after, compares everything. A URL whose
// secret is replaced by *** (mirror.URL.Public) keeps the URL. It returns the error of check, and
// fault.Invalid, with the name of the field, for a wrong draft or when there are too many mirrors.
func (o *Operator) Put(
	ctx context.Context, d mirror.Draft, check registry.Check[mirror.Mirror],
) (m mirror.Mirror, created bool, err error) {
	if m, err = mirror.New(d, o.ports.Clock.Now()); err != nil {
		return mirror.Mirror{}, false, err
	}
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := o.ports.Mirrors.List(ctx)
		if err != nil {
			return err
		}
		current := findMirror(existing, m.Name)
		if err := check.Permit(current); err != nil {
			return err
		}
		if created = current == nil; created && strings.Contains(d.URL, "/t/***") {
			return fault.In("url", fault.New(fault.Invalid, "url has *** in the place of its token, and no mirror has this token"))
		}
		if created {
			return o.add(ctx, len(existing), m)
		}
		m.ManagedBy, m.CreatedAt = cmp.Or(d.ManagedBy, current.ManagedBy), current.CreatedAt
		if d.URL == current.URL.Public() {
			m.URL = current.URL
		}
		return o.replace(ctx, current, &m)
	})
	return m, created, err
}

// Objects returns the mirrors as objects of any kind. Force of a removal purges what the mirror has taken.
func (o *Operator) Objects() management.Objects {
	return managing.Of[mirror.Mirror]{
		Of: &mirror.Kind, Show: show,
		From: func(f audit.Details) (m mirror.Mirror, err error) {
			d, err := mirror.ReadDraft(f)
			if err != nil {
				return m, err
			}
			return mirror.New(d, o.ports.Clock.Now())
		},
		All: managing.PageOf(o.List, func(m *mirror.Mirror) string { return string(m.Name) }),
		One: func(ctx context.Context, key string) (mirror.Mirror, error) { return o.Find(ctx, mirror.Name(key)) },
		Store: func(ctx context.Context, c management.Change, check func(*mirror.Mirror) error) (m mirror.Mirror, created bool, err error) {
			d, err := mirror.ReadDraft(c.Fields)
			if err != nil {
				return m, false, err
			}
			d.ManagedBy = c.Owner
			return o.Put(ctx, d, check)
		},
		Drop: func(ctx context.Context, key string, c management.Change, check func(*mirror.Mirror) error) error {
			_, err := o.Remove(ctx, mirror.Name(key), c.Force, check)
			return err
		},
	}
}

// show returns a mirror as an object. The secret of its URL is a field of its own: one that is shown as
// *** is left out.
func show(m *mirror.Mirror) management.Object {
	fields := m.Fields()
	if address := m.URL.Address(); address != m.URL.Public() {
		fields.Set(audit.FieldSecret, audit.HashSecret(address))
	}
	state := audit.Details{
		"health": audit.Text(m.State.Health()), "nextAt": audit.Time(m.State.NextAt), "lastSuccess": audit.Time(m.State.LastSuccess),
		"failingSince": audit.Time(m.State.FailingSince), "servers": audit.Number(m.State.Servers),
	}
	state.Set("reason", m.State.Reason)
	if len(m.State.Refused) > 0 {
		refused := audit.Details{}
		for rule, n := range m.State.Refused {
			refused[string(rule)] = audit.Number(n)
		}
		state["refused"] = refused
	}
	return management.Object{
		Object: audit.Object{Kind: mirror.Kind.Name, Key: string(m.Name), Fields: fields}, Owner: m.ManagedBy,
		Fixed: audit.Details{"createdAt": audit.Time(m.CreatedAt)}, State: audit.Details{"state": state},
	}
}

func (o *Operator) add(ctx context.Context, existing int, m mirror.Mirror) error {
	if existing >= mirror.Kind.Most {
		return fault.Violated("there are %d mirrors already: remove some", existing)
	}
	if err := o.ports.Mirrors.Put(ctx, m); err != nil {
		return err
	}
	change := newMirrorChange("mirror_add", &m)
	audit.About(change.Details, m.Object())
	return o.ports.Recorder.RecordChanges(ctx, change)
}

// replace replaces a mirror, if the other one differs, and ends a read of the other registry.
func (o *Operator) replace(ctx context.Context, current, m *mirror.Mirror) error {
	details := audit.Changing(audit.Details{}, current.Object(), m.Object())
	next := m.State.NextAt
	if m.State = current.State; details[audit.DetailChanges] == nil {
		return nil
	}
	l, err := o.take(ctx, m.Name)
	if err != nil {
		return err
	}
	m.State.NextAt, m.State.LastFull = next, time.Time{}
	if err := o.ports.Mirrors.Put(ctx, *m); err != nil {
		return err
	}
	change := newMirrorChange("mirror_change", m)
	maps.Copy(change.Details, details)
	return errors.Join(o.ports.Mirrors.Release(ctx, m.Name, l.holder), o.ports.Recorder.RecordChanges(ctx, change))
}

// Schedule makes the next read of the other registry due now. It returns fault.NotFound if the
// mirror does not exist.
func (o *Operator) Schedule(ctx context.Context, name mirror.Name) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		m, err := o.Find(ctx, name)
		if err != nil {
			return err
		}
		m.State.NextAt = o.now()
		change := newMirrorChange("mirror_sync", &m)
		audit.About(change.Details, m.Object())
		return errors.Join(o.ports.Mirrors.Put(ctx, m), o.ports.Recorder.RecordChanges(ctx, change))
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

// Find returns a mirror, or fault.NotFound.
func (o *Operator) Find(ctx context.Context, name mirror.Name) (mirror.Mirror, error) {
	all, err := o.ports.Mirrors.List(ctx)
	if err != nil {
		return mirror.Mirror{}, err
	}
	if m := findMirror(all, name); m != nil {
		return *m, nil
	}
	return mirror.Mirror{}, errNoMirror(name)
}

func findMirror(all []mirror.Mirror, name mirror.Name) *mirror.Mirror {
	return registry.FindIn(all, func(m *mirror.Mirror) bool { return m.Name == name })
}

func errNoMirror(name mirror.Name) error {
	return fault.Newf(fault.NotFound, "there is no mirror %.60q", string(name))
}

func (o *Operator) now() time.Time { return o.ports.Clock.Now().UTC().Truncate(time.Microsecond) }
