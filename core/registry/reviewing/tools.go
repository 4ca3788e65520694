package reviewing

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// The names of actions in the audit log (contract W-12).
const (
	actApproveTools audit.Action = "tools_approve"
	actRejectTools  audit.Action = "tools_reject"
)

// Config are the settings of reviews. The zero value requires no tool lists, and one approval.
type Config struct {
	ToolsRequired tools.Required // of which parts a version needs a list before it is approved
	TwoApprovals  bool           // two people must approve what is dangerous
}

// listOf returns the stored list of which a review is.
func listOf(r *review.Review) (tools.Stored, error) {
	list, err := tools.Parse(r.Document)
	return tools.Stored{
		Name: r.Name, Version: r.Version, Part: r.Part, Source: r.Source, State: tools.State(r.State), At: r.SubmittedAt,
		By: tools.Sender(r.Submitter), List: list,
	}, err
}

// decideTools returns how the decision about the list of a review is stored. It returns fault.Conflict if the
// version or the list is not there any more, or is another one.
func (s *Service) decideTools(
	ctx context.Context, l change.Server, r review.Review, d review.Decision,
) (func(ctx context.Context) error, error) {
	if d.Many {
		return nil, errUnread()
	}
	release := registry.FindIn(l.Releases, func(x *registry.Release) bool { return x.Version == r.Version })
	if release == nil || release.Status == registry.StatusDeleted && registry.CheckQuarantine(l.Quarantined, r.Version) == nil {
		if !d.Approve {
			return func(context.Context) error { return nil }, nil
		}
		return nil, fault.New(fault.Conflict, "the version was deleted meanwhile, so that its tools cannot be approved: reject the review")
	}
	list, err := listOf(&r)
	if err != nil {
		return nil, err
	}
	stored, err := s.ports.ToolLists.OfVersion(ctx, r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	c, err := tools.Decide(stored, list, d.Approve)
	if err != nil {
		return nil, err
	}
	end, err := s.releaseTools(ctx, l, stored, list, d)
	return func(ctx context.Context) error {
		if c.Remove {
			if err := s.ports.ToolLists.Withdraw(ctx, list); err != nil {
				return err
			}
		}
		if err := s.ports.ToolLists.Put(ctx, *c.Put); err != nil || end == nil {
			return err
		}
		if err := end(ctx); err != nil {
			return err
		}
		return s.ports.Events.RecordReleased(ctx, r.Name, r.Version)
	}, err
}

// releaseTools returns what releases a version that is in quarantine because of a list that is approved, unless
// another remote shows other tools, too; nil for nothing.
func (s *Service) releaseTools(
	ctx context.Context, l change.Server, stored []tools.Stored, list tools.Stored, d review.Decision,
) (func(ctx context.Context) error, error) {
	if !d.Approve || slices.ContainsFunc(stored, func(o tools.Stored) bool {
		return o.Source == tools.Asked && (o.State == tools.Differs || o.State == tools.Unstable) && (o.Part != list.Part || o.Source != list.Source)
	}) {
		return nil, nil
	}
	return change.ReleaseTools(ctx, s.ports.Ports, l, list.Version, d.At)
}

// checkCurrent returns fault.Conflict, with what differs now, for a review of a list that another one followed.
func (s *Service) checkCurrent(ctx context.Context, r review.Review, d review.Decision) error {
	if r.Kind != review.Tools || r.State != review.Superseded {
		return nil
	}
	list, err := listOf(&r)
	if err != nil {
		return err
	}
	stored, err := s.ports.ToolLists.OfVersion(ctx, r.Name, r.Version)
	if err == nil {
		_, err = tools.Decide(stored, list, d.Approve)
	}
	return err
}

func errUnread() error {
	return fault.New(fault.Conflict, "it has tools, which are not approved together with others: open the review and read them")
}

// checkLists returns the lists that wait with a document, which its approval approves. It returns
// fault.Forbidden if the decider has sent one of them, and fault.Conflict if one is missing that is required.
func (s *Service) checkLists(ctx context.Context, r review.Review, d review.Decision) ([]tools.Stored, error) {
	waiting, err := s.ports.ToolLists.OfReview(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(waiting, func(l tools.Stored) bool { return l.IsOwn(registry.Holder(d.By)) }) {
		return nil, fault.New(fault.Forbidden, "you cannot approve a version with a tool list that you sent yourself, or through a policy that you created")
	}
	if d.Many && len(waiting) > 0 {
		return nil, errUnread()
	}
	stored := waiting
	if r.Kind == review.Replacement {
		listed, err := s.ports.ToolLists.OfVersion(ctx, r.Name, r.Version)
		if err != nil {
			return nil, err
		}
		stored = slices.Concat(waiting, listed)
	}
	return waiting, tools.CheckRequired(s.config.ToolsRequired, r.Document, stored)
}

// approveLists stores the lists that waited with a document as those of its version, which is listed now.
func (s *Service) approveLists(ctx context.Context, waiting []tools.Stored) error {
	for _, l := range waiting {
		l.Review, l.State = "", tools.Approved
		if err := s.ports.ToolLists.Put(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// addLists adds the tool lists about which a review decides, and whether two people must approve it all.
func (s *Service) addLists(ctx context.Context, shown *review.Shown) error {
	var lists []tools.Shown
	if shown.Kind == review.Tools {
		l, err := listOf(&shown.Review)
		if err != nil {
			return err
		}
		at, err := s.placeOf(ctx, &shown.Review)
		if err != nil {
			return err
		}
		lists = []tools.Shown{{Place: at, Stored: l}}
	} else {
		waiting, err := s.ports.ToolLists.OfReview(ctx, shown.ID)
		if err != nil {
			return err
		}
		lists = tools.Show(shown.Document, waiting)
	}
	for _, l := range lists {
		before, err := s.listBefore(ctx, shown, l.Stored)
		if err != nil {
			return err
		}
		other, err := s.ports.ToolLists.Named(ctx, shown.Name, l.List.Candidates())
		if err != nil {
			return err
		}
		shown.Add(tools.Propose(l, before, other))
	}
	shown.Two = s.config.TwoApprovals && shown.State == review.Pending && shown.IsDangerous()
	if shown.State == review.Pending && (!shown.Two || shown.First.Text != shown.Text()) {
		shown.First = review.Approval{} // it was of something else
	}
	return nil
}

// placeOf returns where the part of a review of a list is in its version; the zero value if the version or the
// part is gone.
func (s *Service) placeOf(ctx context.Context, r *review.Review) (tools.Place, error) {
	version, err := s.ports.Reader.Version(ctx, r.Name, r.Version, true)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return tools.Place{}, err
	}
	for _, p := range tools.PartsOf(version.Document) {
		if p.Key == r.Part {
			return p.Place, nil
		}
	}
	return tools.Place{}, nil
}

// listBefore returns the approved list with which one is compared: that of its version, or else that of the
// latest version for a part that is the same but for its version; nil without one.
func (s *Service) listBefore(ctx context.Context, shown *review.Shown, l tools.Stored) (*tools.List, error) {
	if shown.Kind == review.Tools && shown.Replaces != nil {
		before, err := tools.Parse(shown.Replaces)
		return &before, err
	}
	latest, err := s.ports.Reader.Latest(ctx, shown.Name, false)
	if err != nil || shown.State != review.Pending {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return nil, err
	}
	document := shown.Document
	if shown.Kind == review.Tools {
		version, err := s.ports.Reader.Version(ctx, shown.Name, shown.Version, true)
		if err != nil {
			return nil, err
		}
		document = version.Document
	}
	own, earlier := tools.PartsOf(document), tools.PartsOf(latest.Document)
	stored, err := s.ports.ToolLists.OfVersion(ctx, shown.Name, latest.Version)
	for _, p := range own {
		for _, q := range earlier {
			if before := tools.Find(stored, q.Key, l.Source, true); p.Key == l.Part && p.Like == q.Like && before != nil {
				return &before.List, nil
			}
		}
	}
	return nil, err
}

// describeTools makes an act one about the tool list of a review.
func (s *Service) describeTools(ctx context.Context, act *authority.Act, r *review.Review, d review.Decision) error {
	act.Action, act.ToolState = actRejectTools, string(tools.Rejected)
	if d.Approve {
		act.Action, act.ToolState = actApproveTools, string(tools.Approved)
	}
	at, err := s.placeOf(ctx, r)
	act.Part = registry.Clip(at.String())
	return err
}
