// Package reviewapi serves what was submitted for review, and takes the decisions of reviewers
// (contract C-12, C-13). The use cases that it calls decide who may see and decide what.
package reviewapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	reviewsPath = "/x/dev.tollgate/reviews"
	idParam     = "id"
)

// prefixes returns the prefixes of all paths: the documented one, and the one that the publishing
// client uses.
func prefixes() [2]string { return [2]string{"/v0.1", "/v0"} }

// Reviews reads and decides reviews. *reviews.Service implements it and documents the errors.
type Reviews interface {
	Authorize(ctx context.Context, r reviewing.Request) error
	List(ctx context.Context, r reviewing.Request, q reviewing.Query) (reviewing.Page, error)
	Get(ctx context.Context, r reviewing.Request, id review.ID) (review.Shown, error)
	Approve(ctx context.Context, r reviewing.Request, id review.ID, comment string) (review.Shown, error)
	Reject(ctx context.Context, r reviewing.Request, id review.ID, comment string) (review.Shown, error)
}

// API is the reviewers' part of the API.
type API struct{ reviews Reviews }

// New returns the reviewers' part of the API.
func New(r Reviews) *API { return &API{r} }

// Mount adds the routes of contract C-12 and C-13.
func (a *API) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		r.Get(prefix+reviewsPath, a.listReviews)
		r.Get(prefix+reviewsPath+"/:"+idParam, a.getReview)
		r.Post(prefix+reviewsPath+"/:"+idParam+"/approve", a.approveReview)
		r.Post(prefix+reviewsPath+"/:"+idParam+"/reject", a.rejectReview)
	}
}

// Name implements rest.Part.
func (*API) Name() string { return "reviews" }

// Owns implements rest.Part.
func (*API) Owns(path string) bool {
	for _, prefix := range prefixes() {
		rest, found := strings.CutPrefix(path, prefix)
		if found && (rest == reviewsPath || strings.HasPrefix(rest, reviewsPath+"/")) {
			return true
		}
	}
	return false
}

// Scope implements rest.Part. The paths belong to the registry.
func (*API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// MaxBody implements rest.Part.
func (*API) MaxBody(string, string) int { return rest.MaxRecordBody }

// WriteFault writes {"error": message}.
func (*API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(map[string]string{"error": f.Message})
}

func newRequest(c *fiber.Ctx) reviewing.Request {
	return reviewing.Request{Token: rest.BearerToken(c), Address: rest.Address(c)}
}

func (a *API) listReviews(c *fiber.Ctx) error {
	q := reviewing.Query{State: c.Query("state"), Server: c.Query("server"), Cursor: c.Query("cursor"), Limit: c.Query("limit")}
	p, err := a.reviews.List(c.UserContext(), newRequest(c), q)
	if err != nil {
		return err
	}
	response := listResponse{Reviews: make([]reviewResponse, len(p.Reviews)), Metadata: metadata{p.NextCursor, len(p.Reviews)}}
	for i := range p.Reviews {
		response.Reviews[i] = newReviewResponse(&p.Reviews[i])
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(http.StatusOK).JSON(response)
}

func (a *API) getReview(c *fiber.Ctx) error {
	shown, err := a.reviews.Get(c.UserContext(), newRequest(c), readID(c))
	return sendReview(c, shown, err)
}

func (a *API) approveReview(c *fiber.Ctx) error { return a.decideReview(c, a.reviews.Approve) }

func (a *API) rejectReview(c *fiber.Ctx) error { return a.decideReview(c, a.reviews.Reject) }

// decideReview reads a comment, which an empty body does not have, and decides a review.
func (a *API) decideReview(
	c *fiber.Ctx, decide func(ctx context.Context, r reviewing.Request, id review.ID, comment string) (review.Shown, error),
) error {
	r, comment := newRequest(c), ""
	if err := a.reviews.Authorize(c.UserContext(), r); err != nil {
		return err
	}
	if len(c.Body()) > 0 {
		body, err := jsonbody.Read(c)
		if err != nil {
			return err
		}
		comment = body.OptionalText("comment")
		if err := body.Err(); err != nil {
			return err
		}
	}
	shown, err := decide(c.UserContext(), r, readID(c), comment)
	return sendReview(c, shown, err)
}

// readID returns a copy of the ID in the path.
func readID(c *fiber.Ctx) review.ID {
	return review.ID(strings.ToLower(strings.Clone(c.Params(idParam))))
}

// sendReview sends a review, or returns err.
func sendReview(c *fiber.Ctx, s review.Shown, err error) error {
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(http.StatusOK).JSON(newReviewResponse(&s))
}
