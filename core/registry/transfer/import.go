package transfer

import (
	"context"
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Bounds of what is held in memory and stored at once: the versions of one
// server that stand together in the source.
const (
	batchRecords = registry.MaxVersions
	batchBytes   = 32 << 20
)

// Options is what an operator decides about one import.
type Options struct {
	// Lenient takes documents that break rules, as long as their name and
	// version are good and their JSON means one thing.
	Lenient bool
	// Observe is told what became of each record, in no order. Nil is nobody.
	Observe func(Outcome)
}

// Import stores the records of the source with the status and the times that
// they bring along, and goes on past those that cannot be stored. A version
// that is here already stays as it is. Versions of one server that stand
// together are stored together or not at all.
//
// The counts tell what was done also where an error ended the import: that of
// the source, fault.Unavailable when the database is away, or the context's.
// What was taken until then stays; another import of the same source goes on
// from there.
func (m *Mover) Import(ctx context.Context, src recordsource.Source, o Options) (Counts, error) {
	r := &run{mover: m, options: o}
	err := r.all(ctx, src)
	return r.counts, err
}

// run is one import.
type run struct {
	mover   *Mover
	options Options
	counts  Counts
	batch   []candidate
	bytes   int // of the documents in the batch
}

// candidate is a record that may be stored.
type candidate struct {
	origin   string
	document registry.Document
	release  registry.Release
}

func (r *run) all(ctx context.Context, src recordsource.Source) error {
	for {
		entry, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return r.flush(ctx)
		}
		if err != nil {
			return errors.Join(err, r.flush(ctx)) // what came before is good
		}
		if err := r.take(ctx, entry); err != nil {
			return err
		}
	}
}

// take adds a record to the batch that it belongs to.
func (r *run) take(ctx context.Context, e recordsource.Entry) error {
	c, outcome := r.read(e)
	if outcome.Reason != "" {
		r.tell(outcome)
		return nil
	}
	size := len(c.document.Bytes())
	if len(r.batch) > 0 &&
		(r.batch[0].release.Name != c.release.Name || len(r.batch) >= batchRecords || r.bytes+size > batchBytes) {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.batch = append(r.batch, c)
	r.bytes += size
	return nil
}

// flush stores the batch and tells what became of it. Records that an error
// kept from being stored have no outcome.
func (r *run) flush(ctx context.Context) error {
	batch := r.batch
	r.batch, r.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	outcomes, err := r.mover.store(ctx, batch)
	for _, o := range outcomes {
		r.tell(o)
	}
	return err
}

func (r *run) tell(o Outcome) {
	r.counts.add(o)
	if r.options.Observe != nil {
		r.options.Observe(o)
	}
}

// read checks a record. What cannot be stored, whatever is here already, comes
// back as an outcome with a reason.
func (r *run) read(e recordsource.Entry) (candidate, Outcome) {
	refused := Outcome{Verdict: Refused, Origin: e.Origin}
	if e.Broken != nil {
		refused.Reason, refused.Broken = sentence(e.Broken), true
		return candidate{}, refused
	}
	if e.Unreadable != nil {
		refused.Reason = sentence(e.Unreadable)
		return candidate{}, refused
	}
	draft, err := registry.ParseDraft(e.Document)
	if err != nil {
		refused.Reason = sentence(err)
		return candidate{}, refused
	}
	refused.Name, refused.Version = registry.Clip(draft.Name()), registry.Clip(draft.Version())
	doc, err := r.document(draft)
	if err != nil {
		refused.Reason = sentence(err)
		return candidate{}, refused
	}
	release, err := released(doc, e.Recorded, r.mover.ports.Clock.Now())
	if err != nil {
		refused.Reason = sentence(err)
		return candidate{}, refused
	}
	return candidate{e.Origin, doc, release}, Outcome{}
}

func (r *run) document(d registry.Draft) (registry.Document, error) {
	if r.options.Lenient {
		return d.Tolerated()
	}
	return d.Document()
}

// sentence is what an operator is told of a refusal.
func sentence(err error) string {
	if f, ok := fault.As(err); ok && f.Message != "" {
		return f.Message
	}
	return err.Error()
}
