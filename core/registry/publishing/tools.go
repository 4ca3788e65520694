package publishing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// RecordedTools is what became of a tool list.
type RecordedTools struct {
	First bool          // the part of the version had no list before
	Lists []tools.Shown // all of the version, as readers see them now
}

// RecordTools stores what a tool server shows to a model: the list in the body, of a remote or a
// package of the target (contract W-3, W-5). The caller needs the grant to publish the server or to
// review it; a publisher its policy to publish.
//
// Errors, in the order of the checks: fault.Unsupported when writes are off, fault.Unauthenticated,
// fault.Forbidden without a permission, fault.Invalid for a body that is no list, fault.NotFound for a
// version that is not listed, fault.Forbidden for one in quarantine, fault.Invalid for a remote or a
// package that the version does not have, fault.Conflict when the lists of the version would be too
// large. fault.Unavailable when a dependency fails.
func (p *Publisher) RecordTools(
	ctx context.Context, who authority.Caller, body []byte, t Target,
) (RecordedTools, error) {
	if p.config.WritesOff {
		return RecordedTools{}, errWritesOff("recording tools")
	}
	act, err := p.begin(ctx, who, t.newAct(actTools))
	if err != nil {
		return RecordedTools{}, err
	}
	recorded, err := p.recordTools(ctx, &act, body, t)
	return recorded, permit.Refuse(ctx, p.ports.Acts, act, err)
}

// recordTools stores the list in the body, and adds its part to the act.
func (p *Publisher) recordTools(
	ctx context.Context, act *authority.Act, body []byte, t Target,
) (recorded RecordedTools, err error) {
	if err := p.requireRecorder(ctx, act.Caller, t.Name); err != nil {
		return recorded, err
	}
	place, list, err := tools.ParseRecorded(body)
	if err != nil {
		return recorded, err
	}
	act.Part = registry.Clip(place.String())
	sent := tools.Stored{Source: tools.Recorded, List: list, At: p.ports.Clock.Now().UTC().Truncate(time.Microsecond)}
	if sent.Name, sent.Version, err = t.nameAndVersion(); err != nil {
		return recorded, err
	}
	by, err := p.submitter(ctx, act.Caller, sent.Name)
	if err != nil {
		return recorded, err
	}
	sent.By = tools.Sender(by)
	err = change.Commit(ctx, p.ports.Ports, sent.Name, func(ctx context.Context, s change.Server) (change.Decision, error) {
		document, err := p.listedDocument(ctx, s, sent.Version)
		if err != nil {
			return change.Decision{}, err
		}
		part, err := tools.FindPart(document, place)
		if err != nil {
			return change.Decision{}, err
		}
		sent.Part = part.Key
		stored, err := p.ports.ToolLists.OfVersion(ctx, sent.Name, sent.Version)
		if err != nil {
			return change.Decision{}, err
		}
		received := tools.Receive(stored, sent, p.config.Review)
		after, err := received.Apply(stored, sent)
		if err != nil {
			return change.Decision{}, err
		}
		recorded = RecordedTools{received.First, tools.Show(document, after)}
		done := *act
		done.ToolState = string(received.State)
		return change.Decision{Act: done, Store: func(ctx context.Context) error {
			return p.storeTools(ctx, sent, received)
		}, Announce: func(ctx context.Context) error {
			return p.ports.Events.RecordTools(ctx, sent.Name)
		}}, nil
	})
	return recorded, err
}

// storeTools stores what becomes of a list.
func (p *Publisher) storeTools(ctx context.Context, sent tools.Stored, c tools.Change) error {
	if c.Remove {
		if err := p.ports.ToolLists.Withdraw(ctx, sent); err != nil {
			return err
		}
	}
	if c.Put == nil {
		return nil
	}
	return p.ports.ToolLists.Put(ctx, *c.Put)
}

// listedDocument returns the document of a version of a server that is locked. It returns
// fault.Forbidden for a version in quarantine, and fault.NotFound for one that is deleted or missing.
func (p *Publisher) listedDocument(ctx context.Context, s change.Server, version registry.Version) ([]byte, error) {
	release := registry.FindIn(s.Releases, func(r *registry.Release) bool { return r.Version == version })
	if release == nil {
		return nil, errNotFound()
	}
	if err := registry.CheckQuarantine(s.Quarantined, version); err != nil {
		return nil, err
	}
	if release.Status == registry.StatusDeleted {
		return nil, errNotFound()
	}
	record, err := p.ports.Reader.Version(ctx, release.Name, version, false)
	return record.Document, internalIfNotFound(err)
}

// requireRecorder checks that the caller may send tool lists of a server: with a permission to publish
// it, or with one to review it, which needs FULL_TRUST.
func (p *Publisher) requireRecorder(ctx context.Context, c authority.Caller, serverName string) error {
	either := permission{[]registry.Action{registry.ActionPublish, registry.ActionReview}, publisher.Publish}
	err := p.requirePermission(ctx, c, serverName, either)
	if err != nil || c.Publisher() != nil || p.requirePermission(ctx, c, serverName, publishPermission()) == nil {
		return err
	}
	_, err = c.RequireFullTrust()
	return err
}
