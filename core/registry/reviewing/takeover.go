package reviewing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// MirrorEnder ends what a mirror brought of a server that is published here (contract C-72), with
// what of it waits for review. All fields are required.
type MirrorEnder struct {
	Mirrored   registrystore.MirroredVersions
	Reviews    registrystore.Reviews
	Reader     registrystore.ServerReader
	Writer     registrystore.ServerWriter
	Quarantine registrystore.Quarantine
	Events     *announce.Recorder
	Recorder   authority.Recorder
}

// Publish stores the changes of a lineage and the document that is published, in a transaction that
// has locked the server. If t is not nil, it also stores what the takeover ends, with its events
// and its records in the audit log. people are responsible for the document.
func (e MirrorEnder) Publish(
	ctx context.Context, l *registry.Lineage, doc *registry.Document, t *registry.Takeover, people ...registry.Holder,
) error {
	if t != nil {
		if err := e.end(ctx, doc, t); err != nil {
			return err
		}
	}
	if err := e.Writer.Save(ctx, registrystore.ChangesOf(l, doc, people...)); err != nil || t == nil {
		return err
	}
	return e.record(ctx, doc.Name(), t)
}

// end makes the server local, and ends the reviews of the mirror.
func (e MirrorEnder) end(ctx context.Context, doc *registry.Document, t *registry.Takeover) error {
	name, of := doc.Name(), mirror.Name(t.Mirror)
	tracked, err := e.Mirrored.OfServers(ctx, of, []registry.Name{name})
	if err != nil {
		return err
	}
	for _, v := range tracked {
		if v.Review == "" {
			continue
		}
		waiting, err := e.Reviews.PendingOf(ctx, v.Name, v.Version)
		if err == nil && waiting.ID == v.Review {
			err = Supersede(ctx, e.Reviews, e.Reader, waiting, t.At)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	if len(t.Prior) > 0 {
		if err := e.Quarantine.SetPrior(ctx, name, t.Prior); err != nil {
			return err
		}
	}
	return e.Mirrored.End(ctx, of, name, t.Dropped)
}

// record records what ended.
func (e MirrorEnder) record(ctx context.Context, name registry.Name, t *registry.Takeover) error {
	if len(t.Ended) == 0 {
		return nil
	}
	ended, err := history.SomeVersions(ctx, e.Reader, name, t.Ended)
	if err != nil {
		return err
	}
	if err := e.Events.RecordServer(ctx, name, ended.Records, len(t.Ended)); err != nil {
		return err
	}
	changes := make([]audit.Change, len(t.Ended))
	for i, r := range t.Ended {
		changes[i] = mirror.NewVersionChange("status", mirror.Name(t.Mirror), r, t.Before[i])
	}
	return e.Recorder.RecordChanges(ctx, changes...)
}
