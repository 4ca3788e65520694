// Package transfer holds the use cases that move whole registries: import from
// files and other registries, and export of everything there is. It acts for
// an operator, so it asks for no permission and checks no package ownership;
// it reads no file and writes none itself. Every version that it stores leaves
// its trace in the audit log.
package transfer

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports is what moving asks of the world. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Writer       serverstore.Writer
	Reader       serverstore.Reader
	Trail        authority.Imports
	Clock        clock.Clock
}

// Mover moves records in and out. It is safe for concurrent use, also beside
// those of other processes and a service that serves.
type Mover struct{ ports Ports }

// New returns a mover.
func New(p Ports) *Mover { return &Mover{p} }

// Verdict is what became of a record.
type Verdict string

// The verdicts of an import.
const (
	Taken   Verdict = "taken"   // it is stored now
	Skipped Verdict = "skipped" // its version was there with the same document
	Refused Verdict = "refused" // it is not stored, and the reason says why
)

// Outcome tells what became of one record.
type Outcome struct {
	Verdict Verdict
	Origin  string // where in the source the record stands
	Name    string // of the server, as the record has it; empty when it has none
	Version string // likewise
	Reason  string // why it was refused, or in what a skipped one differs
	Broken  bool   // the part of the source where it stands ends here though it should not
}

// Counts sums outcomes up.
type Counts struct {
	Taken, Skipped, Refused int
	Broken                  int // of the refused: files that could not be read to their end
}

func (c *Counts) add(o Outcome) {
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
}

// exportPage and exportBytes bound how many records, and how many bytes of
// documents, are read and held in memory at once.
const (
	exportPage  = 100
	exportBytes = 4 << 20
)

// Export hands every version of every server to write, deleted ones too,
// ordered by name, then version, both bytewise, and returns how many there
// were. Each page of records is read for itself, so that versions published
// meanwhile may or may not be among them. An error of write ends the export
// and is returned.
func (m *Mover) Export(ctx context.Context, write func(registry.Record) error) (int, error) {
	q := serverstore.Query{Limit: exportPage, Bytes: exportBytes, Deleted: true}
	for n := 0; ; {
		page, err := m.ports.Reader.List(ctx, q)
		if err != nil {
			return n, err
		}
		for _, r := range page.Records {
			if err := write(r); err != nil {
				return n, err
			}
			n++
		}
		if !page.More {
			return n, nil
		}
		q.AfterName, q.AfterVersion = page.End()
	}
}
