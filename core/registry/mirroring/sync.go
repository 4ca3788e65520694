package mirroring

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Options are the settings of one read of another registry.
type Options struct {
	// Full compares everything, even if the mirror does not need that yet.
	Full bool
	// AllowShrink takes a list with less than half of the servers that the mirror has.
	AllowShrink bool
	// IfDue reads nothing before the time of the next read.
	IfDue bool
	// Wait waits for another one that reads the registry, instead of returning ErrBusy.
	Wait bool
	// Observe is called with the progress; optional.
	Observe func(Progress)
	// Report is called with each outcome; optional.
	Report func(Outcome)
}

// Progress says how far a read of another registry is.
type Progress struct {
	Read    int // records that were read
	Applied int // records that were compared and stored, after all were read
}

// Verdict is what a read of another registry means for a version, or for a server.
type Verdict string

// The verdicts.
const (
	Added     Verdict = "added"
	Replaced  Verdict = "replaced"
	Status    Verdict = "status"
	Submitted Verdict = "submitted" // the document waits for review
	Shadowed  Verdict = "shadowed"  // the server was published here, or belongs to another mirror
	Refused   Verdict = "refused"   // it breaks a rule, or is in quarantine
)

// Outcome is what a read of another registry means for a version. Versions that are as they were
// have none.
type Outcome struct {
	Verdict Verdict
	Name    string      // of the server, unchecked for Refused
	Version string      // likewise; empty for Shadowed, and for a server that is refused because of its name
	Reason  string      // of Shadowed and Refused, and what the status is for Status
	Rule    mirror.Rule // of Refused
}

// Summary has the numbers of a read of another registry.
type Summary struct {
	Full    bool // everything was compared
	Records int  // that the other registry listed
	Servers int  // that the mirror has
	Count   map[Verdict]int
	Refused mirror.Refusals // Count[Refused] by rule
}

// Sync reads the other registry of a mirror and takes over what changed. Nothing is taken unless
// the list was read to its end, and each server is taken in one transaction. It returns
// fault.NotFound if the mirror does not exist, ErrBusy, and the reason of a failure, which is also
// in the state of the mirror; what was listed before then stays listed. If the context ends, the
// state does not change, and the next read continues.
func (o *Operator) Sync(ctx context.Context, name mirror.Name, options Options) (Summary, error) {
	l, err := o.acquire(ctx, name, options.Wait)
	if err != nil {
		return Summary{}, err
	}
	defer l.release(ctx)
	m, err := o.Find(ctx, name)
	if err != nil {
		return Summary{}, err
	}
	began := o.now()
	if options.IfDue && !m.IsDue(began) { // another instance was faster
		return Summary{}, ErrBusy
	}
	summary, err := o.syncLeased(ctx, l, m, options)
	if ctx.Err() != nil {
		return summary, ctx.Err()
	}
	if errors.Is(err, errLeaseLost) {
		return summary, err
	}
	state := m.Succeed(mirror.Read{
		Began: began, Full: summary.Full, Servers: summary.Servers, Refused: summary.Refused,
	})
	if err != nil {
		state = m.Fail(fault.PublicMessage(err), o.now())
	}
	return summary, errors.Join(err, o.ports.Mirrors.SaveState(ctx, name, l.holder, state))
}

// syncLeased reads and takes over while the lease lasts.
func (o *Operator) syncLeased(ctx context.Context, l *lease, m mirror.Mirror, options Options) (Summary, error) {
	kept, stop := l.keep(ctx)
	defer stop()
	r, err := o.read(kept, m, options)
	if err != nil {
		return Summary{}, causeOf(kept, err)
	}
	defer func() { _ = r.list.Close() }() // it was opened for reading
	r.lease = l
	if err := r.checkShrink(kept); err != nil {
		return r.summary, causeOf(kept, err)
	}
	err = causeOf(kept, r.apply(kept))
	return r.summary, errors.Join(err, r.record(context.WithoutCancel(ctx)))
}

// record records the run in the audit log, unless it has changed nothing.
func (r *run) record(ctx context.Context) error {
	if r.changes.IsEmpty() {
		return nil
	}
	details := r.changes.Describe(audit.Details{"mirror": audit.Text(r.mirror.Name)}, "versions")
	return r.ports.Recorder.RecordChanges(ctx, registry.NewOperatorChange("mirror_run", details))
}

// causeOf returns why a context ended, or the error if it did not.
func causeOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// read reads the list of the other registry: what changed, or everything if that is due.
func (o *Operator) read(ctx context.Context, m mirror.Mirror, options Options) (*run, error) {
	now := o.now()
	since := m.State.Since(now)
	if options.Full {
		since = time.Time{}
	}
	request := recordsource.ListRequest{
		URL: m.URL, Since: since, Observe: func(records int) { options.observe(Progress{Read: records}) },
	}
	list, err := o.ports.Source.Read(ctx, request)
	if fault.Is(err, fault.Unsupported) && !since.IsZero() {
		request.Since = time.Time{}
		list, err = o.ports.Source.Read(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	protected, err := o.protection(ctx)
	if err != nil {
		return nil, errors.Join(err, list.Close())
	}
	full := request.Since.IsZero()
	return &run{
		Operator: o, mirror: m, options: options, list: list, full: full, protected: protected,
		changes: audit.NewRun("mirror "+string(m.Name), now),
		origin:  registry.Origin{Mirror: string(m.Name), URL: m.URL.Public(), FetchedAt: now},
		summary: Summary{Full: full, Records: list.Records(), Count: map[Verdict]int{}, Refused: mirror.Refusals{}},
	}, nil
}

// protection returns which names mirrors may not take now.
func (o *Operator) protection(ctx context.Context) (mirror.Protection, error) {
	var all []registry.Grant
	for next := (registrystore.GrantQuery{Limit: grantsAtOnce}); ; {
		page, err := o.ports.Grants.Records(ctx, next)
		if err != nil {
			return mirror.Protection{}, err
		}
		if len(page) == 0 {
			return mirror.NewProtection(o.config.Reserved, all), nil
		}
		for _, next.After = range page {
			all = append(all, next.After.Grant)
		}
	}
}

// grantsAtOnce is the number of grants that are read at once.
const grantsAtOnce = 1000

func (o Options) observe(p Progress) {
	if o.Observe != nil {
		o.Observe(p)
	}
}

// Diff reads everything that the other registry of a mirror lists, and returns what Sync would do,
// without doing it. The errors are those of Sync.
func (o *Operator) Diff(ctx context.Context, name mirror.Name, options Options) (Summary, error) {
	m, err := o.Find(ctx, name)
	if err != nil {
		return Summary{}, err
	}
	options.Full = true
	r, err := o.read(ctx, m, options)
	if err != nil {
		return Summary{}, err
	}
	defer func() { _ = r.list.Close() }() // it was opened for reading
	r.dryRun = true
	return r.summary, r.apply(ctx)
}
