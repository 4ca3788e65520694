package mirroring

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// errDryRun rolls back a transaction whose outcomes only are wanted.
var errDryRun = errors.New("a dry run is rolled back")

// apply takes over the whole list.
func (r *run) apply(ctx context.Context) error {
	if !r.full {
		r.summary.Servers = r.mirror.State.Servers
	}
	return r.eachBatch(ctx, r.applyBatch, func(s recordsource.Server) {
		for _, e := range s.Entries {
			parsed, err := transferring.ParseEntry(e, r.mirror.Lenient, r.origin.FetchedAt)
			if err == nil { // the name of the list is not that of the document
				err = fault.New(fault.Invalid, "the record has no valid name")
			}
			r.report(newRefusal(registry.Clip(s.Name), parsed.Version, mirror.RuleOf(err), err))
		}
		r.advance(len(s.Entries))
	})
}

// report counts an outcome and passes it on.
func (r *run) report(o Outcome) {
	r.summary.Count[o.Verdict]++
	switch o.Verdict {
	case Refused:
		r.summary.Refused[o.Rule]++
	case Added, Replaced, Status, Submitted:
		r.changes.Count(o.Name + " " + o.Version)
	case Shadowed:
	}
	if r.options.Report != nil {
		r.options.Report(o)
	}
}

// advance adds to the records that were compared.
func (r *run) advance(records int) {
	r.applied += records
	r.options.observe(Progress{Read: r.summary.Records, Applied: r.applied})
}

// applyBatch takes over the servers of a batch in one transaction; in one for each, if the store
// refuses a change of one of them.
func (r *run) applyBatch(ctx context.Context, batch []pair) error {
	var changed []server
	records := 0
	for _, p := range batch {
		records += len(p.entries)
		s := r.compare(p)
		if s.badName {
			if err := r.findShadow(ctx, &s); err != nil {
				return err
			}
		}
		for _, o := range s.refused {
			r.report(o)
		}
		if len(s.candidates) > 0 || len(s.missing) > 0 {
			changed = append(changed, s)
			continue
		}
		r.count(&p, p.tracked)
	}
	defer r.advance(records)
	if len(changed) == 0 {
		return ctx.Err()
	}
	if !r.dryRun {
		err := r.commit(ctx, changed)
		if !fault.Is(err, fault.Conflict) || errors.Is(err, errLeaseLost) {
			return err
		}
	}
	for i := range changed {
		err := r.commit(ctx, changed[i:i+1])
		if fault.Is(err, fault.Conflict) && !errors.Is(err, errLeaseLost) {
			r.report(newRefusal(changed[i].name.String(), "", mirror.RuleStore, err))
			r.count(&changed[i].pair, changed[i].tracked)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findShadow makes a server shadowed that the mirror may not take because of its name, if it is
// here and the mirror did not bring it: that is what an operator looks for.
func (r *run) findShadow(ctx context.Context, s *server) error {
	latest, err := r.ports.Reader.Latest(ctx, s.name, true)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := registry.NewLineage(s.name, []registry.Release{latest.Release}).
		CheckMirror(string(r.mirror.Name)); err != nil {
		s.missing, s.refused = nil, []Outcome{
			{Verdict: Shadowed, Name: s.name.String(), Reason: transferring.Reason(err)},
		}
	}
	return nil
}

// count adds a server to the number of servers that the mirror has, by what it tracks of it now.
func (r *run) count(p *pair, now []mirror.Tracked) {
	is := anyListed(now)
	switch {
	case r.full && is, !r.full && is && !p.hasListed():
		r.summary.Servers++
	case !r.full && !is && p.hasListed():
		r.summary.Servers--
	}
}

// commit takes over servers in one transaction.
func (r *run) commit(ctx context.Context, servers []server) error {
	var c *committer
	err := r.ports.Transactions.Atomically(transaction.Long(ctx), func(ctx context.Context) error {
		c = &committer{run: r, tracked: make([][]mirror.Tracked, len(servers))}
		if !r.dryRun {
			if err := r.lease.renew(ctx); err != nil {
				return err
			}
		}
		for i := range servers {
			var err error
			if c.tracked[i], err = c.takeOver(ctx, &servers[i]); err != nil {
				return err
			}
		}
		if err := c.finish(ctx); err != nil {
			return err
		}
		if r.dryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	for _, o := range c.outcomes {
		r.report(o)
	}
	for i := range servers {
		r.count(&servers[i].pair, c.tracked[i])
	}
	return nil
}

// committer takes over servers in one transaction.
type committer struct {
	*run

	outcomes []Outcome
	tracked  [][]mirror.Tracked // what the mirror has of each server after it

	changes []registrystore.Change
	put     []mirror.Tracked
	audit   []audit.Change
	events  map[event.Type][]registry.Record
}

// step is what happens to one version.
type step struct {
	tracked  mirror.Tracked
	document *registry.Document // nil for a version that the list does not have
	listed   bool               // it is changed in the registry; else only tracked
	upstream registry.Upstream
}

// takeOver takes over one server and returns what the mirror has of it then.
func (c *committer) takeOver(ctx context.Context, s *server) ([]mirror.Tracked, error) {
	locked, err := c.lock(ctx, s.name)
	if err != nil {
		return nil, err
	}
	if err := locked.CheckMirror(string(c.mirror.Name)); err != nil {
		c.outcomes = append(c.outcomes, Outcome{
			Verdict: Shadowed, Name: s.name.String(), Reason: transferring.Reason(err),
		})
		return nil, nil
	}
	steps, err := c.plan(ctx, s, locked.Lineage)
	if err != nil {
		return nil, err
	}
	stored, err := c.change(ctx, locked.Lineage, locked.Releases, steps)
	if err != nil {
		return nil, err
	}
	c.put = append(c.put, stored...)
	after := slices.Clone(s.tracked)
	for _, t := range stored {
		if i := slices.IndexFunc(after, func(known mirror.Tracked) bool { return known.Version == t.Version }); i >= 0 {
			after[i] = t
		} else {
			after = append(after, t)
		}
	}
	return after, nil
}

// plan returns the steps for the versions of a server. It submits documents for review.
func (c *committer) plan(ctx context.Context, s *server, l *registry.Lineage) ([]step, error) {
	var steps []step
	for i := range s.candidates {
		v := &s.candidates[i]
		waits, err := c.waitsHere(ctx, v)
		if err != nil {
			return nil, err
		}
		if waits {
			const reason = "a document of this version that was submitted here waits for review"
			c.outcomes = append(c.outcomes, Outcome{
				Verdict: Shadowed, Name: v.Name.String(), Version: v.Version.String(), Reason: reason,
			})
			continue
		}
		known, _ := s.known(v.Version)
		next, err := c.planVersion(ctx, v, known, l)
		if err != nil {
			return nil, err
		}
		steps = append(steps, next)
	}
	for _, t := range s.missing {
		superseded, err := c.supersede(ctx, t)
		if err != nil {
			return nil, err
		}
		if superseded {
			t.Hash, t.Review = [sha256.Size]byte{}, ""
		}
		steps = append(steps, step{tracked: t, listed: l.Has(t.Version), upstream: t.Upstream(false)})
	}
	return steps, nil
}

// planVersion returns the step for a version. known is what the mirror has of it; the zero value if
// it has nothing.
func (c *committer) planVersion(
	ctx context.Context, v *candidate, known mirror.Tracked, l *registry.Lineage,
) (step, error) {
	next := step{tracked: v.Tracked, document: &v.document, listed: true}
	next.tracked.Review = known.Review
	isNew, here := v.Hash != known.Hash, l.Has(v.Version)
	switch {
	case c.needsReview() && !v.IsListed():
		// A document that no one approved is not shown, not even as deleted. Without its hash it is
		// submitted if it is listed again.
		superseded, err := c.supersede(ctx, known)
		if next.tracked.Hash = known.Hash; superseded {
			next.tracked.Hash, next.tracked.Review = [sha256.Size]byte{}, ""
		}
		next.listed, next.upstream = here, next.tracked.Upstream(false)
		return next, err
	case c.needsReview() && (isNew || !here && known.Review == ""):
		approved, id, err := c.submit(ctx, v, l)
		if err != nil {
			return step{}, err
		}
		next.tracked.Review, next.listed = id, approved || here
		next.upstream = next.tracked.Upstream(approved)
		return next, nil
	case !isNew && known.Review != "": // what was decided about the document, or will be, holds
		next.listed = here
		next.upstream = next.tracked.Upstream(false)
		return next, nil
	}
	if _, err := c.supersede(ctx, known); err != nil {
		return step{}, err
	}
	next.tracked.Review = ""
	next.upstream = next.tracked.Upstream(isNew || !here)
	return next, nil
}

// needsReview reports whether documents of the mirror wait for review.
func (r *run) needsReview() bool { return r.config.Review && r.mirror.Review == mirror.Pending }

// refuse notes that a version stays as it is.
func (c *committer) refuse(t *mirror.Tracked, err error) {
	c.outcomes = append(c.outcomes, newRefusal(t.Name.String(), t.Version.String(), mirror.RuleOf(err), err))
}

// change changes the versions of a server that are listed, notes the changes, and returns what the
// mirror has of the versions then.
func (c *committer) change(
	ctx context.Context, l *registry.Lineage, before []registry.Release, steps []step,
) ([]mirror.Tracked, error) {
	upstream := make([]registry.Upstream, 0, len(steps))
	for _, s := range steps {
		if s.listed {
			upstream = append(upstream, s.upstream)
		}
	}
	changes, errs := l.Mirror(c.origin, upstream, c.now())
	after := make(map[registry.Version]registry.Release, len(steps))
	for _, r := range l.Changes() {
		after[r.Version] = r
	}
	documents := make(map[registry.Version]*registry.Document, len(steps))
	var stored []mirror.Tracked
	i := 0
	for _, s := range steps {
		if !s.listed {
			stored = append(stored, s.tracked)
			continue
		}
		what, refusal := changes[i], errs[i]
		i++
		if refusal != nil {
			c.refuse(&s.tracked, refusal)
			continue
		}
		stored = append(stored, s.tracked)
		switch what {
		case registry.MirrorNothing:
			continue
		case registry.MirrorHidden:
			c.noteStatus(&s.tracked, string(s.tracked.Status)+", after its release from quarantine")
			continue
		}
		release := after[s.tracked.Version]
		if what != registry.MirrorStatus {
			documents[release.Version] = s.document
		}
		if err := c.note(ctx, what, release, before, s.document); err != nil {
			return nil, err
		}
	}
	if _, prior := l.CarriedQuarantine(); len(prior) > 0 {
		if err := c.ports.Quarantine.SetPrior(ctx, l.Name(), prior); err != nil {
			return nil, err
		}
	}
	for _, r := range l.Changes() {
		change := registrystore.Change{Release: r}
		if d := documents[r.Version]; d != nil {
			change.Document, change.Remotes = d.Bytes(), d.Remotes()
		}
		c.changes = append(c.changes, change)
	}
	return stored, nil
}

// statusOf returns the status and the message of a version; empty if it is missing.
func statusOf(releases []registry.Release, v registry.Version) (s [2]string) {
	for _, r := range releases {
		if r.Version == v {
			return [2]string{string(r.Status), r.StatusMessage}
		}
	}
	return s
}

// noteStatus notes a change of the status of a version in quarantine, which no one sees before its
// release, for the outcomes and the audit log.
func (c *committer) noteStatus(t *mirror.Tracked, reason string) {
	c.outcomes = append(c.outcomes, Outcome{
		Verdict: Status, Name: t.Name.String(), Version: t.Version.String(), Reason: reason,
	})
	c.audit = append(c.audit, mirror.NewVersionChange(string(Status), c.mirror.Name,
		registry.Release{Name: t.Name, Version: t.Version}))
}

// note notes a change for the outcomes, the audit log and the webhooks. before are the releases of
// the server before it.
func (c *committer) note(
	ctx context.Context, what registry.MirrorChange, r registry.Release, before []registry.Release, doc *registry.Document,
) error {
	record := registry.Record{Release: r}
	if doc != nil && what != registry.MirrorStatus {
		record.Document = doc.Bytes()
	} else {
		stored, err := c.ports.Reader.Version(ctx, r.Name, r.Version, true)
		if err != nil {
			return err
		}
		record.Document = stored.Document
	}
	verdict, reason, kind := Status, string(r.Status), event.Status
	switch what {
	case registry.MirrorAdded:
		verdict, kind, reason = Added, event.Published, ""
	case registry.MirrorReplaced:
		verdict, kind, reason = Replaced, event.Replaced, ""
	}
	c.outcomes = append(c.outcomes, Outcome{
		Verdict: verdict, Name: r.Name.String(), Version: r.Version.String(), Reason: reason,
	})
	c.audit = append(c.audit, mirror.NewVersionChange(string(verdict), c.mirror.Name, r, before...))
	if c.events == nil {
		c.events = map[event.Type][]registry.Record{}
	}
	if what != registry.MirrorAdded || r.Status != registry.StatusDeleted {
		c.events[kind] = append(c.events[kind], record)
	}
	if what == registry.MirrorReplaced && statusOf(before, r.Version) != [2]string{string(r.Status), r.StatusMessage} {
		c.events[event.Status] = append(c.events[event.Status], record)
	}
	return nil
}

// finish stores what was noted.
func (c *committer) finish(ctx context.Context) error {
	if len(c.changes) > 0 {
		if err := c.ports.Writer.Save(ctx, c.changes); err != nil {
			return err
		}
	}
	if len(c.put) > 0 {
		if err := c.ports.Mirrored.Put(ctx, c.mirror.Name, c.put); err != nil {
			return err
		}
	}
	for _, t := range []event.Type{event.Published, event.Replaced, event.Status} {
		if err := c.ports.Events.RecordVersions(ctx, t, c.events[t]...); err != nil {
			return err
		}
	}
	for i := range c.audit {
		c.audit[i] = c.run.changes.Part(c.audit[i])
	}
	if len(c.audit) == 0 {
		return nil
	}
	return c.ports.Recorder.RecordChanges(ctx, c.audit...)
}
