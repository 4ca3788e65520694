package transferring

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Bounds of what is in memory at once. A batch is the versions of one server that are next to each
// other in the source. Batches of different servers are a group, which is stored in one
// transaction.
const (
	batchRecords = registry.MaxVersions
	batchBytes   = 32 << 20
	groupServers = 50
	groupBytes   = 16 << 20 // no other server is added beyond this
)

// Options are the settings of one import.
type Options struct {
	// Lenient accepts documents that break rules, if their name and version are valid and their
	// JSON has only one meaning.
	Lenient bool
	// Observe is called with the outcome of each record, in no order; optional.
	Observe func(Outcome)
}

// Import stores the records of the source with their own status and times, and continues after
// records that cannot be stored. A version that is stored already does not change, and nothing of
// what is in quarantine (contract C-22), unless a version that it adds was in quarantine itself and
// with it its server. Versions of one server that are next to each other are
// stored in one transaction, with those of the servers around it unless they conflict.
//
// The counts are valid also with an error, which ends the import: that of the source,
// fault.Unavailable when the database fails, or that of the context. What was stored until then
// stays; another import of the same source continues from there.
func (m *Mover) Import(ctx context.Context, src recordsource.Source, o Options) (Counts, error) {
	run := audit.NewRun("import", m.ports.Clock.Now())
	r := &importRun{mover: &Mover{ports: m.ports, run: &run}, options: o}
	err := r.readAll(ctx, src)
	return r.counts, errors.Join(err, r.record(context.WithoutCancel(ctx)))
}

// record records the import in the audit log, unless it has stored nothing.
func (r *importRun) record(ctx context.Context) error {
	if r.mover.run.IsEmpty() {
		return nil
	}
	return r.mover.ports.Recorder.RecordChanges(ctx,
		registry.NewOperatorChange("import", r.mover.run.Describe(audit.Details{}, "versions")))
}

type importRun struct {
	mover   *Mover
	options Options
	counts  Counts
	group   [][]candidate // a batch of each server
	bytes   int           // size of the documents in the group
	last    int           // of those in its last batch
}

// candidate is a record that may be stored.
type candidate struct {
	origin   string
	document registry.Document
	release  registry.Release
	held     registry.Held
	lists    []tools.Stored
	owner    registry.Owner
}

// readAll imports all entries of the source.
func (r *importRun) readAll(ctx context.Context, src recordsource.Source) error {
	for {
		entry, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return r.storePending(ctx)
		}
		if err != nil {
			return errors.Join(err, r.storePending(ctx)) // the records before are valid
		}
		if err := r.addToGroup(ctx, entry); err != nil {
			return err
		}
	}
}

// addToGroup adds a record to the batch of its server. It stores the group before if the record
// does not fit, or if another batch of its group is of the same server.
func (r *importRun) addToGroup(ctx context.Context, e recordsource.Entry) error {
	c, outcome := r.readEntry(e)
	if outcome.Reason != "" {
		r.report(outcome)
		return nil
	}
	size := len(c.document.Bytes())
	i := slices.IndexFunc(r.group, func(b []candidate) bool { return b[0].release.Name == c.release.Name })
	isLast := i >= 0 && i == len(r.group)-1
	if !isLast || len(r.group[i]) >= batchRecords || r.last+size > batchBytes {
		if i >= 0 || len(r.group) == groupServers || r.bytes+size > groupBytes {
			if err := r.storePending(ctx); err != nil {
				return err
			}
		}
		r.group, r.last = append(r.group, nil), 0
	}
	batch := &r.group[len(r.group)-1]
	*batch = append(*batch, c)
	r.bytes, r.last = r.bytes+size, r.last+size
	return nil
}

// storePending stores the group and reports the outcomes. Records that were not stored because of
// an error have no outcome.
func (r *importRun) storePending(ctx context.Context) error {
	outcomes, err := r.mover.storeGroup(ctx, r.group)
	r.group, r.bytes, r.last = nil, 0, 0
	for _, o := range outcomes {
		r.report(o)
	}
	return err
}

// report counts an outcome and calls Observe.
func (r *importRun) report(o Outcome) {
	r.counts.addOutcome(o)
	if o.Verdict == Taken {
		r.mover.run.Count(o.Name + " " + o.Version)
	}
	if r.options.Observe != nil {
		r.options.Observe(o)
	}
}

// readEntry returns the candidate of an entry. For an entry that can never be stored, it returns an
// outcome with a reason.
func (r *importRun) readEntry(e recordsource.Entry) (candidate, Outcome) {
	refused := Outcome{Verdict: Refused, Origin: e.Origin}
	if e.Broken != nil {
		refused.Reason, refused.Broken = Reason(e.Broken), true
		return candidate{}, refused
	}
	parsed, err := ParseEntry(e, r.options.Lenient, r.mover.ports.Clock.Now())
	refused.Name, refused.Version = parsed.Name, parsed.Version
	if err != nil {
		refused.Reason = Reason(err)
		if !r.options.Lenient {
			_, strict := ParseEntry(e, true, r.mover.ports.Clock.Now())
			refused.Lenient = strict == nil
		}
		return candidate{}, refused
	}
	held, err := heldOf(parsed.Release.Version, e.Recorded.Quarantine, r.mover.ports.Clock.Now())
	if err != nil {
		refused.Reason = Reason(err)
		return candidate{}, refused
	}
	lists, err := listsOf(parsed, e.Recorded.Tools)
	if err != nil {
		refused.Reason = Reason(err)
		return candidate{}, refused
	}
	owner, err := registry.NewOwner(e.Recorded.Owner, e.Recorded.Contact)
	if err != nil {
		refused.Reason = Reason(err)
		return candidate{}, refused
	}
	return candidate{e.Origin, parsed.Document, parsed.Release, held, lists, owner}, Outcome{}
}

// listsOf returns the approved tool lists of a version. One of a part that the document does not have is left
// out; those that wait are sent or asked for again.
func listsOf(p Parsed, recorded []recordsource.ToolList) (all []tools.Stored, err error) {
	for _, r := range recorded {
		part, err := tools.FindPart(p.Document.Bytes(), tools.Place{Remote: r.Remote, Package: r.Package})
		if err != nil || r.State != string(tools.Approved) {
			continue
		}
		l := tools.Stored{
			Name: p.Release.Name, Version: p.Release.Version, Part: part.Key, State: tools.Approved, At: r.At.Truncate(time.Microsecond),
			By: tools.Sender{Key: r.By},
		}
		if l.Source, err = tools.ParseSource(r.Source); err == nil {
			l.List, err = tools.Parse(r.Content)
		}
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "the tool list of %s: %s", part, fault.PublicMessage(err))
		}
		all = append(all, l)
	}
	return all, nil
}

// Reason returns the message of an error for an operator, also that of an error without a kind.
func Reason(err error) string {
	if f, ok := fault.As(err); ok && f.Message != "" {
		return f.Message
	}
	return err.Error()
}
