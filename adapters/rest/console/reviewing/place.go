package reviewing

import (
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

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
	waiting, err := p.ports.Reviews.Waiting(v.UserContext(), who)
	if err != nil {
		return err
	}
	all := waiting.Reviews
	view.Waiting, view.Place = waiting.Count, 1+slices.IndexFunc(all, func(r review.Shown) bool { return r.ID == view.ID })
	if view.Place > 1 {
		view.Previous = Path + "/" + string(all[view.Place-2].ID)
	}
	if view.Place > 0 && view.Place < len(all) {
		view.Next = Path + "/" + string(all[view.Place].ID)
	}
	return nil
}
