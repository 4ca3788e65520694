package reviewing

import (
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// waiting returns the first page of what waits for a person, who has submitted and approved none of it, in the order of the list.
func (p *Pages) waiting(v *site.Visit, who authority.Caller) ([]queueRow, error) {
	found, err := p.ports.Reviews.List(v.UserContext(), who, reviewing.Query{})
	if err != nil {
		return nil, err
	}
	view := queueView{Open: true}
	view.add(found)
	return slices.DeleteFunc(view.Reviews, func(r queueRow) bool { return !r.WaitsFor(registry.Holder(v.Session.UserID)) }), err
}

// next returns the review that a person decides next; empty without one.
func (p *Pages) next(v *site.Visit, who authority.Caller) (registry.ReviewID, error) {
	waiting, err := p.waiting(v, who)
	if err != nil || len(waiting) == 0 {
		return "", err
	}
	return waiting[0].ID, nil
}

// addPlace adds where a review that waits is among those that wait, and what was decided before about its version.
func (p *Pages) addPlace(v *site.Visit, who authority.Caller, view *reviewView) (err error) {
	if view.Past, err = p.ports.Reviews.Before(v.UserContext(), view.Review); err != nil {
		return err
	}
	if view.Past.ID != "" {
		if err := p.addPast(v, view); err != nil {
			return err
		}
	}
	if !view.Open || view.Own {
		return nil
	}
	return p.addNeighbours(v, who, view)
}

// addPast adds who has refused the version before, and what differs since.
func (p *Pages) addPast(v *site.Visit, view *reviewView) (err error) {
	if view.PastDecider, err = v.NameOf(view.Past.DecidedBy); err != nil || view.Shown.Kind == review.Tools {
		return err
	}
	view.Since, err = review.Summarize(view.Past.Document, view.Shown.Document)
	view.Since = view.Since[:min(len(view.Since), maxPoints)]
	return err
}

// addNeighbours adds the reviews before and after one, of those that wait for a person.
func (p *Pages) addNeighbours(v *site.Visit, who authority.Caller, view *reviewView) error {
	waiting, err := p.waiting(v, who)
	if err != nil {
		return err
	}
	if view.Waiting, err = p.ports.Reviews.CountPending(v.UserContext(), who); err != nil {
		return err
	}
	i := slices.IndexFunc(waiting, func(r queueRow) bool { return r.ID == view.ID })
	if i > 0 {
		view.Previous = Path + "/" + string(waiting[i-1].ID)
	}
	if i >= 0 && i+1 < len(waiting) {
		view.Next = Path + "/" + string(waiting[i+1].ID)
	}
	return nil
}
