package reviewing

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// maxSelected is how many reviews one form decides.
const maxSelected = 100

// decideSelected approves or rejects the selected documents, each as if it were the only one. Of
// those that are refused, the page says why; the others are decided.
func (p *Pages) decideSelected(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	do, notice := p.ports.Reviews.Approve, "approved"
	if v.Form.Get("decision") == "reject" {
		do, notice = p.ports.Reviews.Reject, "rejected"
	}
	ids := v.Form["ids"]
	if len(ids) == 0 || len(ids) > maxSelected {
		return fault.Newf(fault.Invalid, "select 1 to %d reviews", maxSelected)
	}
	comment, err := review.ParseComment(v.Form.Get("comment"), notice == "rejected")
	if err != nil {
		return err
	}
	if err := decideEach(v.UserContext(), who, ids, comment, do); err != nil {
		return err
	}
	return v.Redirect(Path + "?done=" + notice)
}

// selected returns the reviews that are selected in a form.
func selected(v *site.Visit) map[review.ID]bool {
	ids := map[review.ID]bool{}
	for _, id := range v.Form["ids"] {
		ids[review.ID(id)] = true
	}
	return ids
}

// decideEach decides reviews. Its error says what became of those that were refused, unless the
// caller lacks trust or the database is away.
func decideEach(
	ctx context.Context, who authority.Caller, ids []string, comment string,
	do func(context.Context, authority.Caller, review.ID, string) (review.Shown, error),
) error {
	var refused []string
	for _, id := range ids {
		_, err := do(ctx, who, review.ID(id), comment)
		f, ok := fault.As(err)
		switch {
		case err == nil:
		case !ok || f.Kind == fault.Unavailable || f.Kind == fault.Internal || f.Code == auth.CodeInsufficientTrust:
			return err
		default:
			refused = append(refused, f.Message)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fault.Newf(fault.Conflict, "%d of %d were refused: %s", len(refused), len(ids), strings.Join(refused, "; "))
}
