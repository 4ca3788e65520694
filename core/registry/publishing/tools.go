package publishing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
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
// version that is neither listed nor waits for review, fault.Forbidden for one in quarantine, fault.Invalid for a remote or a
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
	sent := receiving.Sent{Place: place, Source: tools.Recorded, List: list, At: p.ports.Clock.Now()}
	if sent.Name, sent.Version, err = t.nameAndVersion(); err != nil {
		return recorded, err
	}
	by, err := p.submitter(ctx, act.Caller, sent.Name)
	if err != nil {
		return recorded, err
	}
	sent.By = tools.Sender(by)
	err = change.Commit(ctx, p.ports.Ports, sent.Name, func(ctx context.Context, s change.Server) (change.Decision, error) {
		received, err := p.ports.ToolLists.Receive(ctx, s, sent)
		if err != nil {
			return change.Decision{}, err
		}
		recorded = RecordedTools{received.First, received.Lists}
		done := *act
		done.ToolState = string(received.State)
		return change.Decision{Act: done, Store: received.Store, Announce: received.Announce}, nil
	})
	return recorded, err
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
