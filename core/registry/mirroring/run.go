package mirroring

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// The bounds of a batch, which is in memory and stored at once.
const (
	batchServers = 50
	batchBytes   = 16 << 20
)

// run is one read of another registry, whose list is complete.
type run struct {
	*Operator

	lease   *lease // not used by a dry run
	mirror  mirror.Mirror
	options Options
	list    recordsource.List
	full    bool // the list has everything
	dryRun  bool
	// protected are the names that the mirror may not take.
	protected mirror.Protection
	origin    registry.Origin
	summary   Summary
	applied   int // records
	changes   audit.Run
}

// pair is a server as the other registry lists it, and as the mirror has it.
type pair struct {
	name    registry.Name
	entries []recordsource.Entry // empty if the list does not have the server
	tracked []mirror.Tracked     // by version; empty if the mirror does not have the server
}

// hasListed reports whether the mirror has a version of the server that is not deleted.
func (p *pair) hasListed() bool { return anyListed(p.tracked) }

func anyListed(tracked []mirror.Tracked) bool {
	return slices.ContainsFunc(tracked, func(t mirror.Tracked) bool { return t.IsListed() })
}

// willBeListed reports whether a version of the server will not be deleted after the list was
// taken, if no rule refuses one. Without full, versions that the list does not have stay.
func (p *pair) willBeListed(full bool) bool {
	changed := make(map[string]bool, len(p.entries))
	for _, e := range p.entries {
		if e.Recorded.Status != string(registry.StatusDeleted) {
			return true
		}
		if draft, err := registry.ParseDraft(e.Document); err == nil {
			changed[draft.Version()] = true
		}
	}
	return !full &&
		slices.ContainsFunc(p.tracked, func(t mirror.Tracked) bool {
			return t.IsListed() && !changed[t.Version.String()]
		})
}

// checkShrink returns fault.Conflict if the other registry lists less than half of the servers that
// the mirror has, and takes: an operator may have excluded others.
func (r *run) checkShrink(ctx context.Context) error {
	if r.options.AllowShrink {
		return nil
	}
	had, lost, lists := 0, 0, 0
	err := r.eachBatch(ctx, func(_ context.Context, batch []pair) error {
		for i := range batch {
			before, after := batch[i].hasListed(), batch[i].willBeListed(r.full)
			switch {
			case before && after:
				had, lists = had+1, lists+1
			case before && r.mirror.Takes(batch[i].name):
				had, lost = had+1, lost+1
			case after && !before:
				lists++
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if !r.full {
		had, lists = r.mirror.State.Servers, r.mirror.State.Servers-lost
	}
	return mirror.CheckShrink(had, lists)
}

// eachBatch calls do with batches of all servers that the mirror takes, ordered by name: those of
// the list, and if the list has everything also those that only the mirror has. unnamed is called
// with the records without a valid name; it may be nil.
func (r *run) eachBatch(
	ctx context.Context, do func(context.Context, []pair) error, unnamed func(recordsource.Server),
) error {
	r.list.Rewind()
	b := &batcher{run: r, do: do, known: &trackedServers{run: r}}
	for {
		server, err := r.list.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, err := registry.ParseName(server.Name)
		if err != nil {
			if unnamed != nil {
				unnamed(server)
			}
			continue
		}
		if !r.mirror.Takes(name) {
			continue
		}
		if err := b.add(ctx, pair{name: name, entries: server.Entries}); err != nil {
			return err
		}
	}
	return b.finish(ctx)
}

// batcher collects pairs.
type batcher struct {
	run   *run
	do    func(context.Context, []pair) error
	known *trackedServers
	batch []pair
	bytes int
}

// add adds a server of the list, after those with smaller names that only the mirror has.
func (b *batcher) add(ctx context.Context, p pair) error {
	if b.run.full {
		for {
			known, err := b.known.peek(ctx)
			if err != nil {
				return err
			}
			if len(known) == 0 || known[0].Name.String() > p.name.String() {
				break
			}
			b.known.skip()
			if known[0].Name == p.name {
				p.tracked = known
				break
			}
			if err := b.push(ctx, pair{name: known[0].Name, tracked: known}); err != nil {
				return err
			}
		}
	}
	return b.push(ctx, p)
}

// finish adds the servers that only the mirror has, and ends the last batch.
func (b *batcher) finish(ctx context.Context) error {
	for b.run.full {
		known, err := b.known.peek(ctx)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			break
		}
		b.known.skip()
		if err := b.push(ctx, pair{name: known[0].Name, tracked: known}); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

func (b *batcher) push(ctx context.Context, p pair) error {
	size := 0
	for _, e := range p.entries {
		size += len(e.Document)
	}
	if len(b.batch) >= batchServers || len(b.batch) > 0 && b.bytes+size > batchBytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.batch, b.bytes = append(b.batch, p), b.bytes+size
	return nil
}

func (b *batcher) flush(ctx context.Context) error {
	batch := b.batch
	b.batch, b.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	if !b.run.full {
		if err := b.run.findTracked(ctx, batch); err != nil {
			return err
		}
	}
	return b.do(ctx, batch)
}

// findTracked adds to the pairs what the mirror has of them.
func (r *run) findTracked(ctx context.Context, batch []pair) error {
	names := make([]registry.Name, len(batch))
	place := make(map[registry.Name]int, len(batch))
	for i, p := range batch {
		names[i], place[p.name] = p.name, i
	}
	all, err := r.ports.Mirrored.OfServers(ctx, r.mirror.Name, names)
	for _, t := range all {
		i := place[t.Name]
		batch[i].tracked = append(batch[i].tracked, t)
	}
	return err
}

// trackedServers reads what a mirror has, server by server.
type trackedServers struct {
	run   *run
	page  []mirror.Tracked
	after string
	ended bool
}

// peek returns the versions of the next server; none after the last.
func (s *trackedServers) peek(ctx context.Context) ([]mirror.Tracked, error) {
	if len(s.page) == 0 && !s.ended {
		var err error
		if s.page, err = s.run.ports.Mirrored.Page(ctx, s.run.mirror.Name, s.after,
			registrystore.MaxNames); err != nil {
			return nil, err
		}
		if s.ended = len(s.page) == 0; !s.ended {
			s.after = s.page[len(s.page)-1].Name.String()
		}
	}
	return s.page[:s.length()], nil
}

// skip goes to the next server.
func (s *trackedServers) skip() { s.page = s.page[s.length():] }

// length returns how many versions of the page the next server has.
func (s *trackedServers) length() int {
	n := 0
	for n < len(s.page) && s.page[n].Name == s.page[0].Name {
		n++
	}
	return n
}

// candidate is a version that the other registry lists in another state than the mirror has it.
type candidate struct {
	mirror.Tracked
	document registry.Document
}

// server is what has to change of one server.
type server struct {
	pair

	candidates []candidate
	missing    []mirror.Tracked // versions that are not listed any more
	refused    []Outcome
	badName    bool // the mirror may not take it because of its name
}

// known returns what the mirror has of a version.
func (p *pair) known(v registry.Version) (mirror.Tracked, bool) {
	i := slices.IndexFunc(p.tracked, func(t mirror.Tracked) bool { return t.Version == v })
	if i < 0 {
		return mirror.Tracked{}, false
	}
	return p.tracked[i], true
}

// absent is the status message of a version that the other registry does not list any more.
const absent = "the registry from which it is mirrored does not list it any more"

// compare returns what has to change of a server. One that the mirror may not take because of its
// name has nothing listed any more.
func (r *run) compare(p pair) server {
	s := server{pair: p}
	if rule, err := r.mirror.CheckName(p.name, r.protected); err != nil {
		if len(p.entries) > 0 {
			s.refused = append(s.refused, newRefusal(p.name.String(), "", rule, err))
		}
		s.end(endings()[rule], func(mirror.Tracked) bool { return true })
		s.badName = true
		return s
	}
	listed := make(map[registry.Version]bool, len(p.entries))
	byHash := make(map[[sha256.Size]byte]mirror.Tracked, len(p.tracked))
	for _, t := range p.tracked {
		byHash[t.Hash] = t
	}
	for _, e := range lastOfEach(p.entries) {
		hash := sha256.Sum256(e.Document)
		if t, ok := byHash[hash]; ok && isSame(&t, e.Recorded) {
			listed[t.Version] = true
			continue
		}
		parsed, err := transferring.ParseEntry(e, r.mirror.Lenient, r.origin.FetchedAt)
		if err != nil {
			s.refused = append(s.refused, newRefusal(p.name.String(), parsed.Version, mirror.RuleOf(err), err))
			if v, err := registry.ParseVersion(parsed.Version); err == nil {
				listed[v] = true
			}
			continue
		}
		release := parsed.Release
		listed[release.Version] = true
		s.candidates = append(s.candidates, candidate{mirror.Tracked{
			Name: p.name, Version: release.Version, Hash: hash,
			Status: release.Status, Message: release.StatusMessage, PublishedAt: truncate(e.Recorded.PublishedAt),
			StatusChangedAt: truncate(e.Recorded.StatusChangedAt),
		}, parsed.Document})
	}
	if r.full {
		s.end(absent, func(t mirror.Tracked) bool { return !listed[t.Version] })
	}
	return s
}

// end makes listed versions deleted, with a message.
func (s *server) end(message string, which func(mirror.Tracked) bool) {
	for _, t := range s.tracked {
		if t.IsListed() && which(t) {
			t.Status, t.Message, t.StatusChangedAt = registry.StatusDeleted, message, time.Time{}
			s.missing = append(s.missing, t)
		}
	}
}

// endings returns the status messages of versions that a mirror had taken before a rule about names
// refused them.
func endings() map[mirror.Rule]string {
	return map[mirror.Rule]string{
		mirror.RuleReserved: "its namespace is reserved here, so that it is not mirrored any more",
		mirror.RuleGranted:  "its namespace belongs to people here, so that it is not mirrored any more",
	}
}

// newRefusal returns the outcome of a version that is refused, or of a server without a version.
func newRefusal(name, version string, rule mirror.Rule, err error) Outcome {
	return Outcome{Verdict: Refused, Name: name, Version: version, Reason: transferring.Reason(err), Rule: rule}
}

// isSame reports whether another registry records what the mirror has of a version, whose document
// is the same.
func isSame(t *mirror.Tracked, r recordsource.Recorded) bool {
	status := r.Status
	if status == "" {
		status = string(registry.StatusActive)
	}
	return string(t.Status) == status && t.Message == r.StatusMessage && t.PublishedAt.Equal(truncate(r.PublishedAt)) &&
		t.StatusChangedAt.Equal(truncate(r.StatusChangedAt))
}

func truncate(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// lastOfEach returns the entries without those whose version comes again after them.
func lastOfEach(entries []recordsource.Entry) []recordsource.Entry {
	if len(entries) < 2 {
		return entries
	}
	last := make(map[string]int, len(entries))
	versions := make([]string, len(entries))
	for i, e := range entries {
		if e.Unreadable != nil {
			continue
		}
		if draft, err := registry.ParseDraft(e.Document); err == nil {
			versions[i] = draft.Version()
			last[versions[i]] = i
		}
	}
	kept := make([]recordsource.Entry, 0, len(entries))
	for i, e := range entries {
		if at, ok := last[versions[i]]; !ok || at == i {
			kept = append(kept, e)
		}
	}
	return kept
}
