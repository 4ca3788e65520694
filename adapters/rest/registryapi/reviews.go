package registryapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

const (
	reviewsPath = "/x/dev.tollgate/reviews"
	reviewParam = "id"
)

// Reviewer reads and decides reviews. *reviews.Service implements it and documents the errors.
type Reviewer interface {
	Authorize(ctx context.Context, r reviewing.Request) error
	List(ctx context.Context, r reviewing.Request, q reviewing.Query) (reviewing.Page, error)
	Get(ctx context.Context, r reviewing.Request, id review.ID) (review.Shown, error)
	Approve(ctx context.Context, r reviewing.Request, id review.ID, comment string) (review.Shown, error)
	Reject(ctx context.Context, r reviewing.Request, id review.ID, comment string) (review.Shown, error)
}

// Reviews is the part of the API with what was submitted for review and the decisions of reviewers
// (contract C-12, C-13). The use case decides who may see and decide what.
type Reviews struct {
	part
	reviews Reviewer
}

// NewReviews returns the reviewers' part of the API.
func NewReviews(r Reviewer) *Reviews { return &Reviews{part{"reviews", []string{reviewsPath}}, r} }

// Mount adds the routes of contract C-12 and C-13.
func (a *Reviews) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		r.Get(prefix+reviewsPath, a.listReviews)
		r.Get(prefix+reviewsPath+"/:"+reviewParam, a.getReview)
		r.Post(prefix+reviewsPath+"/:"+reviewParam+"/approve", a.approveReview)
		r.Post(prefix+reviewsPath+"/:"+reviewParam+"/reject", a.rejectReview)
	}
}

func newReviewRequest(c *fiber.Ctx) reviewing.Request {
	return reviewing.Request{Token: rest.BearerToken(c), Address: rest.Address(c)}
}

func (a *Reviews) listReviews(c *fiber.Ctx) error {
	q := reviewing.Query{State: c.Query("state"), Server: c.Query("server"), Cursor: c.Query("cursor"), Limit: c.Query("limit")}
	p, err := a.reviews.List(c.UserContext(), newReviewRequest(c), q)
	if err != nil {
		return err
	}
	response := reviewList{Reviews: make([]reviewResponse, len(p.Reviews)), Metadata: metadata{p.NextCursor, len(p.Reviews)}}
	for i := range p.Reviews {
		response.Reviews[i] = newReviewResponse(&p.Reviews[i])
	}
	return sendUncached(c, http.StatusOK, response)
}

func (a *Reviews) getReview(c *fiber.Ctx) error {
	shown, err := a.reviews.Get(c.UserContext(), newReviewRequest(c), readID(c))
	return sendReview(c, shown, err)
}

func (a *Reviews) approveReview(c *fiber.Ctx) error { return a.decideReview(c, a.reviews.Approve) }

func (a *Reviews) rejectReview(c *fiber.Ctx) error { return a.decideReview(c, a.reviews.Reject) }

// decideReview reads a comment, which an empty body does not have, and decides a review.
func (a *Reviews) decideReview(
	c *fiber.Ctx, decide func(ctx context.Context, r reviewing.Request, id review.ID, comment string) (review.Shown, error),
) error {
	r, comment := newReviewRequest(c), ""
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
	return review.ID(strings.ToLower(strings.Clone(c.Params(reviewParam))))
}

// sendReview sends a review, or returns err.
func sendReview(c *fiber.Ctx, s review.Shown, err error) error {
	if err != nil {
		return err
	}
	return sendUncached(c, http.StatusOK, newReviewResponse(&s))
}
