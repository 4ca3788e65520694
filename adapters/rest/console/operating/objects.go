package operating

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// shower shows a page, with the problems of the form on it that was sent.
type shower func(ctx context.Context, v *site.Visit, problems site.Problems) error

// open adds the route of a page with forms.
func (p *Pages) open(r fiber.Router, path string, show shower) {
	r.Get(path, p.page(func(ctx context.Context, v *site.Visit) error { return show(ctx, v, nil) }))
}

// done leads to a page with a notice, unless there is an error.
func done(v *site.Visit, err error, page, notice string) error {
	if err != nil {
		return err
	}
	return v.Redirect(page + "?done=" + notice)
}

// newHead returns the head of a page with forms.
func newHead(v *site.Visit, title string, problems site.Problems, forms ...site.FormView) site.Head {
	return site.Head{Title: title, Notice: notices[v.Text("done")], Problems: problems.Among(forms...)}
}

// setConflict gives a page the status of a conflict if it shows why a change was refused of what a file
// manages: there is no form on it to mend.
func setConflict(v *site.Visit, problems site.Problems, manager string) {
	if manager != "" && len(problems) > 0 {
		v.Status(fiber.StatusConflict)
	}
}

// key returns a parameter of the path as the key of an object; one that cannot be read is the key of
// nothing.
func key[T ~string](v *site.Visit, name string) T {
	text, _ := v.Param(name)
	return T(text)
}

// byHand returns the check of a change by a person: that the object exists, and no file manages it.
func byHand[T any](manager func(*T) string) registry.Check[T] {
	return func(current *T) error {
		if current == nil {
			return fault.New(fault.NotFound, "it was removed while you edited it")
		}
		return registry.CheckByHand(manager(current), "")
	}
}
