// Package change makes a change of one server: it locks the server, and stores what was decided
// together with its events and its record in the audit log, or nothing. It has no rules: the
// lineage of a server, in package registry, decides.
package change

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of a change. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Writer       registrystore.ServerWriter
	Quarantine   registrystore.Quarantine
	Acts         authority.Acts
}

// Server is a server that is locked until the end of a transaction.
type Server struct {
	*registry.Lineage
	Releases    []registry.Release // as they are stored
	Quarantined []registry.Quarantined
}

// Lock locks a server in the transaction that the context carries: other changes of it wait.
func Lock(
	ctx context.Context, w registrystore.ServerWriter, q registrystore.Quarantine, name registry.Name,
) (Server, error) {
	releases, err := w.Lock(ctx, name)
	if err != nil {
		return Server{}, err
	}
	var quarantined []registry.Quarantined
	if len(releases) > 0 { // nothing of a server that is not there is in quarantine
		if quarantined, err = q.Entries(ctx, name); err != nil {
			return Server{}, err
		}
	}
	return Server{registry.NewLineage(name, releases, quarantined...), releases, quarantined}, nil
}

// Save stores the changes of the lineage, which have no new documents.
func (s Server) Save(ctx context.Context, w registrystore.ServerWriter) error {
	changes := registrystore.ChangesOf(s.Lineage, nil)
	if len(changes) == 0 {
		return nil
	}
	return w.Save(ctx, changes)
}

// Decision is what becomes of a server. All fields are required.
type Decision struct {
	// Store stores the decision, if need be with the changes of the lineage.
	Store func(ctx context.Context) error
	// Announce records the events of the decision.
	Announce func(ctx context.Context) error
	Act      authority.Act
}

// Commit decides about a server that is locked, and stores the decision, its events and its act in
// one transaction. decide may be called again. Commit returns its error.
func Commit(
	ctx context.Context, p Ports, name registry.Name, decide func(ctx context.Context, s Server) (Decision, error),
) error {
	return p.Transactions.Atomically(ctx, func(ctx context.Context) error {
		s, err := Lock(ctx, p.Writer, p.Quarantine, name)
		if err != nil {
			return err
		}
		d, err := decide(ctx, s)
		if err != nil {
			return err
		}
		if err := d.Store(ctx); err != nil {
			return err
		}
		if err := d.Announce(ctx); err != nil {
			return err
		}
		return p.Acts.Record(ctx, d.Act)
	})
}

// ReleaseTools releases a version of a locked server that is in quarantine because of its tools (contract
// W-7), and returns what stores that; nil if it is not.
func ReleaseTools(
	ctx context.Context, p Ports, s Server, v registry.Version, now time.Time,
) (store func(ctx context.Context) error, err error) {
	if q, found := registry.FindQuarantine(s.Quarantined, v); !found || q.Version != v || q.By != tools.Service {
		return nil, nil
	}
	prior, err := p.Quarantine.PriorStatuses(ctx, s.Name())
	if err != nil {
		return nil, err
	}
	released, err := s.Release(v, prior, now)
	return func(ctx context.Context) error {
		if err := p.Quarantine.Remove(ctx, s.Name(), v, released); err != nil {
			return err
		}
		return s.Save(ctx, p.Writer)
	}, err
}
