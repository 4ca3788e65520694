// Package transferring holds the use cases that move whole registries: import from files and other
// registries, and export of everything. It acts for an operator, so it checks neither permission
// nor package ownership. It does not read or write files. Every version that it stores is recorded
// in the audit log, as a part of the import, and the import with their number.
package transferring

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of a Mover. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Writer       registrystore.ServerWriter
	Reader       registrystore.ServerReader
	Quarantine   registrystore.Quarantine
	ToolLists    registrystore.ToolLists
	Owners       registrystore.Owners
	Events       *announce.Recorder
	Recorder     authority.Recorder
	Clock        clock.Clock
}

// Mover imports and exports records. It is safe for concurrent use, including other processes and a
// running service.
type Mover struct {
	ports Ports
	run   *audit.Run // the import, of which the changes are parts
}

// New returns a mover.
func New(p Ports) *Mover { return &Mover{ports: p} }

// Verdict is the result for a record.
type Verdict string

// The verdicts of an import.
const (
	Taken   Verdict = "taken"   // the record is stored
	Skipped Verdict = "skipped" // its version was stored before, with the same document
	Refused Verdict = "refused" // the record is not stored; the reason says why
)

// Outcome is the result for one record.
type Outcome struct {
	Verdict Verdict
	Origin  string // the place of the record in the source
	Name    string // of the server, unchecked; empty if the record has no name
	Version string // of the server, unchecked; empty if the record has no version
	Reason  string // why it was refused, or how a skipped one differs
	Broken  bool   // this part of the source ended early
	Lenient bool   // Options.Lenient imports it
}

// Counts are the numbers of outcomes.
type Counts struct {
	Taken, Skipped, Refused int
	Broken                  int // of the refused: files that could not be read to their end
	Lenient                 int // of the refused: those that Options.Lenient imports
}

func (c *Counts) addOutcome(o Outcome) {
	switch o.Verdict {
	case Taken:
		c.Taken++
	case Skipped:
		c.Skipped++
	case Refused:
		c.Refused++
	}
	if o.Broken {
		c.Broken++
	}
	if o.Lenient {
		c.Lenient++
	}
}

// Export calls write with every version of every server, including deleted ones, with its
// quarantine, its tool lists and the owner of its server, ordered by name, then version, both bytewise. It returns the number of versions. Each
// page of records is read separately, so that versions published meanwhile may be missing. An error
// of write ends the export and is returned.
func (m *Mover) Export(ctx context.Context, write func(recordsource.Exported) error) (int, error) {
	n := 0
	server := heldServer{mover: m}
	listed, err := m.ports.ToolLists.Servers(ctx)
	if err != nil {
		return 0, err
	}
	owners, err := m.ports.Owners.All(ctx)
	if err != nil {
		return 0, err
	}
	err = history.EachVersion(ctx, m.ports.Reader, func(r registry.Record) error {
		held, err := server.find(ctx, r.Release)
		if err != nil {
			return err
		}
		one := recordsource.Exported{Record: r, Held: held, Owner: owners[r.Name.String()]}
		if _, found := slices.BinarySearchFunc(listed, r.Name, compareNames); found {
			stored, err := m.ports.ToolLists.OfVersion(ctx, r.Name, r.Version)
			if err != nil {
				return err
			}
			one.Tools = tools.Show(r.Document, stored)
		}
		if err := write(one); err != nil {
			return err
		}
		n++
		return nil
	})
	return n, err
}

func compareNames(a, b registry.Name) int { return strings.Compare(a.String(), b.String()) }

// heldServer is what of one server is in quarantine. It is read for deleted versions only: what is
// in quarantine is deleted.
type heldServer struct {
	mover   *Mover
	name    registry.Name
	entries []registry.Quarantined
	prior   []registry.PriorStatus
}

// find returns the quarantine of a version.
func (s *heldServer) find(ctx context.Context, r registry.Release) (held registry.Held, err error) {
	if r.Status != registry.StatusDeleted {
		return registry.Held{}, nil
	}
	if s.name != r.Name {
		if s.entries, err = s.mover.ports.Quarantine.Entries(ctx, r.Name); err != nil {
			return registry.Held{}, err
		}
		if s.prior = nil; len(s.entries) > 0 {
			if s.prior, err = s.mover.ports.Quarantine.PriorStatuses(ctx, r.Name); err != nil {
				return registry.Held{}, err
			}
		}
		s.name = r.Name
	}
	for _, q := range s.entries {
		if q.Version == r.Version || q.Version == (registry.Version{}) {
			held.Entries = append(held.Entries, q)
		}
	}
	for _, p := range s.prior {
		if p.Version == r.Version {
			held.Prior = p
		}
	}
	return held, nil
}
